"""A page with models that have random weights, two of them for one task."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from elmo_tasks.paper.static_vectors import StaticVectors
from elmo_tasks.vectors.elmo import Elmo

if TYPE_CHECKING:
    from elmo_tasks.web.tasks import DemoTask
    from elmo_tasks.web.word_comparer import WordComparer

TEXT = "They play football .\nThe play opens ."


@pytest.fixture(scope="package")
def comparer(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> "WordComparer":
    from elmo_tasks.web.word_comparer import WordComparer, shipped_index

    folder = tmp_path_factory.mktemp("words")
    (folder / "vectors.txt").write_text("play 1 0\ngame 1 1\nfilm 0 1\n")
    index = shipped_index(elmo, folder / "index")
    return WordComparer(elmo, str.split, index, StaticVectors(folder / "vectors.txt"))


@pytest.fixture(scope="package")
def archives(archive: Callable[..., Path]) -> "list[DemoTask]":
    from elmo_tasks.web.tasks import DemoTask

    paths = [archive("ner"), archive("ner", "both", 1)]
    paths += [archive(task) for task in ("srl", "snli", "sst", "squad", "coref")]
    return [DemoTask(path, "en") for path in paths]


@pytest.fixture(scope="package")
def url(comparer: "WordComparer", archives: "list[DemoTask]") -> Iterator[str]:
    from elmo_tasks.web.page import make_page, serve

    page = make_page(comparer, [[TEXT, "play"]], archives)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve(page, port=port, blocks=False)
    yield f"http://127.0.0.1:{port}/"
    page.close()
