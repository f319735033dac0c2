"""The word `device` at every door: one name, one default and one error."""

import pickle
import shlex
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import spacy
import torch

from elmo_tasks import Elmo, TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.corpora.annotate import annotate_file
from elmo_tasks.corpora.embed import EmbedOptions
from elmo_tasks.paper.perplexity import LanguageModel
from elmo_tasks.predictors.parts_of_speech import PosTagger
from elmo_tasks.spacy.elmo_component import ElmoComponent
from elmo_tasks.spacy.pipeline import device_in_spacy
from elmo_tasks.spacy.task_components import TaskComponent
from elmo_tasks.vectors.devices import device_of
from elmo_tasks.vectors.sklearn_vectorizer import ElmoVectorizer
from tests.devices import ON_CUDA
from tests.paths import TINY_BILM
from tests.vectors.options_test import defaults

TEXT = "Ann met Bob in Rome . He was tired ."


@pytest.fixture
def files(tmp_path, archive):
    (tmp_path / "text.txt").write_text(f"{TEXT}\n")
    names = {"text": "text.txt", "jsonl": "out.jsonl", "h5": "out.h5", "index": "index"}
    return {
        **{key: str(tmp_path / name) for key, name in names.items()},
        "model": str(archive("ner", "none", 3)),
    }


def in_spacy(name: str, **config: Any) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe(name, config=config)
    nlp(TEXT)


def served(monkeypatch: pytest.MonkeyPatch, model: str, device: str) -> None:
    pytest.importorskip("fastapi_offline")
    from elmo_tasks.web.serve import make_app

    monkeypatch.setenv("ELMO_TASKS_SERVE", shlex.quote(model))
    monkeypatch.setenv("ELMO_TASKS_SERVE_DEVICE", device)
    make_app()


DOORS: dict[str, Callable[[dict[str, str], str, Any, Any], Any]] = {
    "Elmo": lambda files, device, *_: Elmo.from_pretrained(TINY_BILM, device=device).embed([TEXT]),
    "ElmoVectorizer": lambda files, device, *_: ElmoVectorizer(
        TINY_BILM, device=device
    ).fit_transform([TEXT]),
    "embed": lambda files, device, *_: main(
        ["embed", files["text"], files["h5"], "--bilm", str(TINY_BILM), "--device", device]
    ),
    "TrainedTask": lambda files, device, *_: TrainedTask(files["model"], device=device)(TEXT),
    "annotate": lambda files, device, *_: main(
        ["annotate", files["model"], files["text"], files["jsonl"], "--device", device]
    ),
    "elmo": lambda files, device, *_: in_spacy("elmo", bilm=str(TINY_BILM), device=device),
    "elmo_ner": lambda files, device, *_: in_spacy("elmo_ner", model=files["model"], device=device),
    "elmo_task": lambda files, device, *_: in_spacy(
        "elmo_task", model=files["model"], device=device
    ),
    "serve": lambda files, device, _, monkeypatch: served(monkeypatch, files["model"], device),
    "elmo-neighbors": lambda files, device, command, _: command(
        "elmo-neighbors",
        "index",
        files["text"],
        files["index"],
        "--bilm",
        TINY_BILM,
        "--device",
        device,
    ),
}


@pytest.mark.parametrize("device", ["cpu", ON_CUDA])
@pytest.mark.parametrize("door", DOORS)
def test_a_device_is_used(files, command, monkeypatch, door, device):
    found = DOORS[door](files, device, command, monkeypatch)
    assert found == 0 if door in ("embed", "annotate") else not isinstance(found, int)


@pytest.mark.parametrize("door", [*DOORS, "elmo-perplexity", "elmo-wsd", "elmo-demo"])
def test_a_device_that_does_not_exist_is_an_error(
    files, command, monkeypatch, capsys, fixtures_root, door
):
    arguments = {
        "elmo-perplexity": [TINY_BILM, files["text"]],
        "elmo-wsd": ["--data", fixtures_root / "wsd", "--bilm", TINY_BILM],
        "elmo-demo": [files["model"]],
    }
    if door == "elmo-demo":
        pytest.importorskip("gradio")
    run = DOORS.get(door, lambda *_: command(door, *arguments[door], "--device", "cuda:7"))
    try:
        found = run(files, "cuda:7", command, monkeypatch)
        message = capsys.readouterr().err
        assert found == 1
    except (ValueError, SystemExit) as error:
        message = str(error)
    assert "expected one of the devices cpu" in message and "got 'cuda:7'" in message


@pytest.mark.parametrize("door", [device_of, device_in_spacy])
def test_the_number_of_a_gpu_is_not_the_default(door):
    has_gpu = torch.cuda.is_available()
    with (
        nullcontext()
        if has_gpu
        else pytest.raises(ValueError, match="one of the devices cpu, got '0'")
    ):
        assert door(0) == torch.device("cuda", 0)


def test_names_and_defaults_are_those_of_elmo():
    doors = (
        ElmoVectorizer,
        EmbedOptions,
        TrainedTask,
        annotate_file,
        TaskComponent,
        ElmoComponent,
        LanguageModel,
    )
    expected = defaults(Elmo.from_pretrained)["device"]
    assert (
        [defaults(door)["device"] for door in (*doors, PosTagger)] == [expected] * 8 == [None] * 8
    )


def test_a_copy_keeps_the_device(files):
    """
    Not the place of a model that is loaded by default: the other process may have a different GPU,
    or none.
    """
    content = pickle.dumps(TrainedTask(files["model"], device="cpu"))
    assert b"cpu" in content
    assert pickle.loads(content)(TEXT) == TrainedTask(files["model"])(TEXT)


def test_a_gpu_is_the_default_if_there_is_one(monkeypatch):
    asked = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: asked.append(True) or False)
    assert (device_of(None).type, device_of("cpu").type, asked) == ("cpu", "cpu", [True])
