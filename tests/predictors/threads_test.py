"""
Tests of threads that share one model, pipeline or biLM: their answers equal the answers of one
thread.
"""

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import spacy

from elmo_tasks import Elmo, TrainedTask
from elmo_tasks.bilm import LayerCache
from tests.results import approximately
from tests.task_models import EACH_PLACE

INPUTS = {"coref": 1, "ner": 1, "snli": 2, "squad": 2, "srl": 1, "sst": 1}
TEXT = "Ann met her brother in Rome . He was tired and she carried the old bag because it rained"
# Words per text, from and to.
LENGTHS = {"equal": (12, 12), "unequal": (1, 30)}


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """
    Lets Python change to a different thread every 0.1 milliseconds, and not only every five
    milliseconds.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)


def random_texts(n_texts: int, lengths: str) -> list[str]:
    draw = random.Random(lengths)
    texts = []
    for _ in range(n_texts):
        n_words = draw.randint(*LENGTHS[lengths])
        texts.append(" ".join(draw.choices(TEXT.split(), k=n_words)))
    return texts


def by_threads(function: Callable[[Any], Any], inputs: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(function, inputs))


def spans_of(results: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(name["start"], name["end"]) for name in results]


@pytest.mark.parametrize("places", EACH_PLACE)
@pytest.mark.parametrize("task", INPUTS)
def test_threads_that_share_a_task_get_the_results_of_one_thread(archive, task, places):
    path = archive(task, places, 3)
    unshared = TrainedTask(path)
    shared = TrainedTask(path)
    for lengths in LENGTHS:
        texts = random_texts(8 * INPUTS[task], lengths)
        columns = [texts[:8], texts[8:]][: INPUTS[task]]
        inputs = list(zip(*columns, strict=True))
        expected = [unshared(*texts_of_input) for texts_of_input in inputs]
        # The first calls of a new model, too.
        results = by_threads(lambda texts_of_input: shared(*texts_of_input), inputs)
        assert results == approximately(expected)
        # A list of texts is a batch.
        batches = []
        for number in range(0, 8, 2):
            batches.append([column[number : number + 2] for column in columns])
        expected = [unshared(*batch) for batch in batches]
        assert by_threads(lambda batch: shared(*batch), batches) == approximately(expected)


@pytest.fixture
def loads(monkeypatch) -> list[TrainedTask]:
    """The tasks that are loaded during a test."""
    loaded = []
    initialize = TrainedTask.__init__

    def note_and_initialize(task: TrainedTask, *arguments: Any, **options: Any) -> None:
        loaded.append(task)
        initialize(task, *arguments, **options)

    monkeypatch.setattr(TrainedTask, "__init__", note_and_initialize)
    return loaded


class TestFirstLoad:
    TEXT = " ".join(TEXT.split()[:6])

    def test_a_pipeline_loads_its_model_once(self, archive, loads):
        path = archive("ner", "both", 3)
        expected = spans_of(TrainedTask(path)(self.TEXT))
        pipeline = spacy.blank("en")
        component = pipeline.add_pipe("elmo_ner", config={"model": str(path)})
        loads.clear()

        def spans_of_doc(text: str) -> list[tuple[int, int]]:
            doc = component(pipeline.make_doc(text))
            return [(span.start_char, span.end_char) for span in doc.ents]

        assert by_threads(spans_of_doc, [self.TEXT] * 8) == [expected] * 8
        assert len(loads) == 1

    def test_models_of_threads_are_loaded_one_after_the_other(self, archive, loads):
        path = archive("ner", "both", 3)
        expected = spans_of(TrainedTask(path)(self.TEXT))
        results = by_threads(lambda text: TrainedTask(path)(text), [self.TEXT] * 8)
        assert [spans_of(names) for names in results] == [expected] * 8
        assert len(loads) == 1 + 8


class TestVectors:
    @pytest.mark.parametrize("is_cached", [pytest.param(False, marks=pytest.mark.weekly), True])
    def test_threads_that_share_elmo_get_the_vectors_of_one_thread(self, tmp_path, is_cached):
        cache = LayerCache(tmp_path / "layers") if is_cached else None
        elmo = Elmo.from_pretrained(layer_cache=cache)
        sentences = random_texts(12, "equal") + random_texts(12, "unequal")
        expected = Elmo.from_pretrained().embed(sentences)
        vectors = by_threads(lambda sentence: elmo.embed([sentence], progress=False)[0], sentences)
        for sentence_vectors, expected_vectors in zip(vectors, expected, strict=True):
            assert np.allclose(sentence_vectors, expected_vectors, atol=1e-5)

    def test_a_spacy_pipeline(self):
        pipeline = spacy.blank("en")
        pipeline.add_pipe("sentencizer")
        pipeline.add_pipe("elmo")
        texts = random_texts(6, "equal") + random_texts(6, "unequal")
        vectors = by_threads(lambda text: pipeline(text)._.elmo, texts)
        for text_vectors, text in zip(vectors, texts, strict=True):
            assert np.allclose(text_vectors, pipeline(text)._.elmo, atol=1e-5)
