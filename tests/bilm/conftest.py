from pathlib import Path

import pytest

from elmo_tasks.bilm import Bilm
from tests.bilm.helpers import random_bilm, save


@pytest.fixture(scope="module")
def bilm() -> Bilm:
    return random_bilm()


@pytest.fixture
def files(bilm: Bilm, tmp_path: Path) -> tuple[str, str]:
    """The options and the weights of `bilm`."""
    return save(bilm, tmp_path)


@pytest.fixture(scope="module")
def news(fixtures_root: Path) -> list[list[str]]:
    """
    Sentences of news, because on text that is not English, rounding the weights can change a vector
    a lot.
    """
    content = (fixtures_root / "ner" / "test.txt").read_text(encoding="utf-8")
    sentences = []
    # Without the line that begins the document.
    for block in content.split("\n\n")[1:61]:
        if block.strip():
            sentences.append([line.split()[0] for line in block.splitlines()])
    return sentences
