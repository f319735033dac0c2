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
from tests.predictors.trained_task_test import rounded
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


def texts(n_texts: int, lengths: str) -> list[str]:
    draw = random.Random(lengths)
    return [
        " ".join(draw.choices(TEXT.split(), k=draw.randint(*LENGTHS[lengths])))
        for _ in range(n_texts)
    ]


def by_threads(function: Callable[[Any], Any], inputs: list[Any]) -> list[Any]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(function, inputs))


@pytest.mark.parametrize("places", EACH_PLACE)
@pytest.mark.parametrize("task", INPUTS)
def test_a_task(archive, task, places):
    path = archive(task, places, 3)
    one, shared = TrainedTask(path), TrainedTask(path)
    for lengths in LENGTHS:
        found = texts(8 * INPUTS[task], lengths)
        inputs = (
            list(zip(found[:8], found[-8:], strict=True))
            if INPUTS[task] == 2
            else [(each,) for each in found]
        )
        expected = [one(*each) for each in inputs]
        # The first calls of a new model, too.
        assert by_threads(lambda each: shared(*each), inputs) == rounded(expected)
        # A list of texts is a batch.
        batches = [
            [list(column) for column in zip(*inputs[n : n + 2], strict=True)]
            for n in range(0, 8, 2)
        ]
        assert by_threads(lambda each: shared(*each), batches) == rounded(
            [one(*each) for each in batches]
        )


@pytest.mark.parametrize("door", ["pipeline", "task"])
def test_the_first_load(archive, monkeypatch, door):
    """Threads load a pipeline's model once, and models of their own one after the other."""
    path, text = archive("ner", "both", 3), " ".join(TEXT.split()[:6])
    pipeline, loads = spacy.blank("en"), []
    component = pipeline.add_pipe("elmo_ner", config={"model": str(path)})
    expected = [(each["start"], each["end"]) for each in TrainedTask(path)(text)]
    initialize = TrainedTask.__init__
    monkeypatch.setattr(
        TrainedTask,
        "__init__",
        lambda *given, **options: loads.append(1) or initialize(*given, **options),
    )
    calls: dict[str, Callable[[Any], list[tuple[int, int]]]] = {
        "pipeline": lambda _: [
            (span.start_char, span.end_char) for span in component(pipeline.make_doc(text)).ents
        ],
        "task": lambda _: [(each["start"], each["end"]) for each in TrainedTask(path)(text)],
    }
    assert by_threads(calls[door], [None] * 8) == [expected] * 8
    assert len(loads) == {"pipeline": 1, "task": 8}[door]


class TestVectors:
    @pytest.mark.parametrize("is_cached", [pytest.param(False, marks=pytest.mark.weekly), True])
    def test_elmo(self, tmp_path, is_cached):
        elmo = Elmo.from_pretrained(
            layer_cache=LayerCache(tmp_path / "layers") if is_cached else None
        )
        sentences = [*texts(12, "equal"), *texts(12, "unequal")]
        expected = Elmo.from_pretrained().embed(sentences)
        found = by_threads(lambda sentence: elmo.embed([sentence], progress=False)[0], sentences)
        assert all(np.allclose(*pair, atol=1e-5) for pair in zip(found, expected, strict=True))

    def test_a_spacy_pipeline(self):
        pipeline = spacy.blank("en")
        pipeline.add_pipe("sentencizer")
        pipeline.add_pipe("elmo")
        given = [*texts(6, "equal"), *texts(6, "unequal")]
        found = by_threads(lambda text: pipeline(text)._.elmo, given)
        assert all(
            np.allclose(vector, pipeline(text)._.elmo, atol=1e-5)
            for vector, text in zip(found, given, strict=True)
        )
