"""
The trained models of a process run their biLM once per sentence, and give the results of one model
alone.
"""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest
import spacy

from elmo_tasks import Elmo, TrainedTask
from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.layer_cache import CachedBilm, LayerMemory
from elmo_tasks.corpora.annotate import annotate_file
from elmo_tasks.modules.contextual import contextual_bilm
from tests.paths import TINY_BILM
from tests.results import approximately

N_SENTENCES = 4
NUMBERS = count()


@pytest.fixture
def texts() -> list[str]:
    """Of no other test: a model that a test still has keeps the layers of its texts."""
    last = f"He had {next(NUMBERS)} ."
    return [
        f"Ann met her brother in Rome, after {last} {last}",
        f"It rained, and {last} She saw that {last}",
        last,
    ]


@pytest.fixture
def computed(monkeypatch) -> Iterator[list[int]]:
    """The numbers of sentences that biLMs have computed for stores."""
    numbers: list[int] = []
    forward = Bilm.forward

    def counted(self: Bilm, inputs):
        numbers.append(len(inputs))
        return forward(self, inputs)

    monkeypatch.setattr(Bilm, "forward", counted)
    yield numbers


@pytest.fixture
def models(archive, tmp_path) -> dict[str, str]:
    """Two models with equal biLMs."""
    paths = {"first": tmp_path / "first.tar.gz", "second": tmp_path / "second.tar.gz"}
    for seed, (path, places) in enumerate(zip(paths.values(), ("input", "both"), strict=True)):
        shutil.copy(archive("ner", places, seed), path)
    return {name: str(path) for name, path in paths.items()}


def share_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models that are loaded from now on compute all sentences themselves."""
    monkeypatch.setattr(
        contextual_bilm, "shared_bilm", lambda bilm: CachedBilm(bilm, LayerMemory(2**20))
    )


class TestSharedPass:
    @pytest.mark.parametrize("names", [("elmo", "first", "second"), ("second", "elmo", "first")])
    @pytest.mark.parametrize("as_stream", [False, True])
    def test_components(self, models, computed, texts, names, as_stream):
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        for name in names:
            if name in models:
                nlp.add_pipe("elmo_ner", name, config={"model": models[name]})
            else:
                nlp.add_pipe(name, config={"bilm": str(TINY_BILM)})
        docs = list(nlp.pipe(texts)) if as_stream else list(map(nlp, texts))
        assert sum(computed) == N_SENTENCES
        expected = Elmo.from_pretrained(TINY_BILM).embed([[token.text for token in docs[2]]])[0]
        assert all(
            np.allclose(token._.elmo, vector, atol=1e-5)
            for token, vector in zip(docs[2], expected, strict=True)
        )

    def test_tasks_of_a_process_and_alone(self, models, computed, texts, monkeypatch):
        first, second = map(TrainedTask, models.values())
        together = first(texts), second(texts)
        assert sum(computed) == N_SENTENCES
        share_nothing(monkeypatch)
        for model, results in zip(models.values(), together, strict=True):
            assert TrainedTask(model)(texts) == approximately(results)
        assert sum(computed) == 3 * N_SENTENCES

    def test_a_corpus(self, models, computed, texts, tmp_path):
        (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
        annotate_file(list(models.values()), tmp_path / "texts.txt", tmp_path / "out.jsonl")
        assert sum(computed) == N_SENTENCES


def test_threads_over_several_models(models, archive, texts, monkeypatch):
    """Each text is read by all models at the same time, and by none before."""
    paths = [*models.values(), str(archive("sst", "both", 3))]
    texts = [f"{text} It was number {number} ." for number in range(4) for text in texts]
    calls = [(path, text) for text in texts for path in paths]
    tasks = {path: TrainedTask(path) for path in paths}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda call: tasks[call[0]](call[1]), calls))
    share_nothing(monkeypatch)
    alone = {path: TrainedTask(path) for path in paths}
    for (path, text), result in zip(calls, found, strict=True):
        assert alone[path](text) == approximately(result)
