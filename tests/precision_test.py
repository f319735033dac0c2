"""The word `precision` at every entry point: the biLM computes with it."""

import shlex
from pathlib import Path

import pytest
import spacy

from elmo_tasks import Elmo, ElmoVectorizer, TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.bilm import Bilm
from tests.paths import TINY_BILM

BILM = str(TINY_BILM)
OPTION = ["--precision", "bf16"]


def elmo(text: str, folder: Path, model: str) -> None:
    Elmo.from_pretrained(BILM, precision="bf16").embed([text])


def vectorizer(text: str, folder: Path, model: str) -> None:
    ElmoVectorizer(BILM, precision="bf16").transform([text])


def trained_task(text: str, folder: Path, model: str) -> None:
    TrainedTask(model, precision="bf16")(text)


def embed(text: str, folder: Path, model: str) -> None:
    command = ["embed", f"{folder}/text.txt", f"{folder}/out.h5", "--bilm", BILM]
    assert main([*command, *OPTION]) == 0


def annotate(text: str, folder: Path, model: str) -> None:
    assert main(["annotate", model, f"{folder}/text.txt", f"{folder}/out.jsonl", *OPTION]) == 0


def spacy_vectors(text: str, folder: Path, model: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": BILM, "precision": "bf16"})
    nlp(text)


def spacy_names(text: str, folder: Path, model: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_ner", config={"model": model, "precision": "bf16"})
    nlp(text)


def service(text: str, folder: Path, model: str) -> None:
    pytest.importorskip("fastapi_offline")
    testclient = pytest.importorskip("starlette.testclient")
    from elmo_tasks.web.serve import make_app

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMO_TASKS_SERVE", shlex.quote(model))
        patch.setenv("ELMO_TASKS_SERVE_PRECISION", "bf16")
        client = testclient.TestClient(make_app(), base_url="http://127.0.0.1")
    assert client.post("/ner", json={"text": text}).status_code == 200


ENTRY_POINTS = [
    elmo,
    vectorizer,
    trained_task,
    embed,
    annotate,
    spacy_vectors,
    spacy_names,
    service,
]


@pytest.mark.parametrize("use", ENTRY_POINTS)
def test_the_bilm_computes_with_the_given_precision(use, archive, tmp_path, monkeypatch):
    precisions = set()
    forward = Bilm.forward

    def note_and_forward(bilm, sentences):
        precisions.add(bilm.precision)
        return forward(bilm, sentences)

    monkeypatch.setattr(Bilm, "forward", note_and_forward)
    # No model has the layers of this text in memory.
    text = f"Ann met {use.__name__} in Rome ."
    (tmp_path / "text.txt").write_text(f"{text}\n")
    use(text, tmp_path, str(archive("ner", "input", 3)))
    assert precisions == {"bf16"}
