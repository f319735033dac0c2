"""Small biLMs with random weights, and what hypothesis draws them and their sentences from."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import strategies as st

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.cache import layer_store
from elmo_tasks.bilm.cache.layer_store import LayerStore
from tests.bilm.store import LIMIT, close

SMALL = BilmOptions(
    cell_dim=8,
    projection_dim=6,
    n_layers=2,
    cell_clip=0.8,
    projection_clip=1.5,
    character_dim=3,
    filters=((1, 2), (3, 4), (7, 3)),
    n_highway=2,
)


def random_bilm(options: BilmOptions = SMALL, *, seed: int = 0, std: float = 0.3, stateful: bool = False) -> Bilm:
    """A biLM with every parameter drawn anew: fresh ones have biases of zero, which hide what reads them wrongly."""
    bilm = Bilm(options, stateful=stateful)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(std=std, generator=generator)
        # No word: the public format has no row for it.
        bilm.character_encoder.embedding.weight[0] = 0.0
    return bilm.requires_grad_(False)


def save(bilm: Bilm, folder: str | Path, **kwargs: torch.dtype) -> tuple[str, str]:
    """Writes `options.json` and `weights.hdf5` and returns their paths."""
    options_file, weight_file = f"{folder}/options.json", f"{folder}/weights.hdf5"
    bilm.save(options_file, weight_file, **kwargs)
    return options_file, weight_file


def allennlp_layers(bilm: torch.nn.Module, character_ids: torch.Tensor) -> list[torch.Tensor]:
    """What AllenNLP's `_ElmoBiLm` says of a batch, in the form of `BilmOutput.layers`."""
    from allennlp.nn.util import remove_sentence_boundaries

    output = bilm(character_ids)
    return [remove_sentence_boundaries(layer, output["mask"])[0] for layer in output["activations"]]


def assert_layers_equal(ours: tuple[torch.Tensor, ...], theirs: list[torch.Tensor], atol: float) -> None:
    """Every layer has the shape and, but for `atol`, the values of the other."""
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=0.0, atol=atol)


def words() -> st.SearchStrategy[str]:
    """Mostly short words that repeat, and all that a file may hold: any code point, long words, boundary words."""
    short = st.text("abé.", min_size=1, max_size=5)
    anything = st.text(st.characters(), max_size=20)
    long = st.builds(lambda text, n: text * n, st.text("aé😀", min_size=1, max_size=2), st.integers(10, 60))
    return st.one_of(short, short, anything, long, st.sampled_from(["<S>", "</S>"]))


def batches(max_size: int = 4) -> st.SearchStrategy[list[list[str]]]:
    """At least one sentence; any of them may be empty."""
    return st.lists(st.lists(words(), max_size=6), min_size=1, max_size=max_size)


@st.composite
def bilm_options(draw: st.DrawFn) -> BilmOptions:
    """Small biLMs of every shape."""
    clips = st.none() | st.integers(1, 3) | st.floats(0.05, 3.0)
    return BilmOptions(
        cell_dim=draw(st.integers(1, 9)),
        projection_dim=draw(st.integers(1, 7)),
        n_layers=draw(st.integers(1, 3)),
        cell_clip=draw(clips),
        projection_clip=draw(clips),
        character_dim=draw(st.integers(1, 4)),
        filters=tuple(draw(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=3))),
        n_highway=draw(st.integers(0, 2)),
        activation=draw(st.sampled_from(["relu", "tanh"])),
    )


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """There is nothing to share out in so small a biLM, and threads that wait for each other take ten times as long."""
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(n_threads)


@pytest.fixture(scope="module")
def bilm() -> Bilm:
    return random_bilm()


@pytest.fixture
def files(bilm: Bilm, tmp_path: Path) -> tuple[str, str]:
    """The options and the weights of `bilm`."""
    return save(bilm, tmp_path)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """A test leaves no file open."""
    yield
    close()


@pytest.fixture
def store(tmp_path: Path) -> LayerStore:
    return LayerStore(tmp_path / "cache", LIMIT)


@pytest.fixture
def warnings() -> Iterator[list[logging.LogRecord]]:
    """What is logged, warnings or not; the list of a forked child is its own."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append
    layer_store.logger.addHandler(handler)
    yield records
    layer_store.logger.removeHandler(handler)


@pytest.fixture(scope="module")
def news(fixtures_root: Path) -> list[list[str]]:
    """Sentences of news: on what is no language, rounding the weights alone may move a vector far."""
    texts = (fixtures_root / "ner" / "test.txt").read_text(encoding="utf-8").split("\n\n")
    return [[line.split()[0] for line in text.splitlines()] for text in texts[1:61] if text.strip()]
