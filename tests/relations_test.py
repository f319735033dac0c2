"""A task outside the package with a result type of its own, at each entry point."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import spacy
from allennlp.commands.train import train_model_from_file
from allennlp.common.util import import_module_and_submodules
from spacy.tokens import DocBin

import elmo_tasks.plugin  # noqa: F401
from elmo_tasks import TrainedTask
from elmo_tasks.__main__ import main
from tests.paths import CHECKOUT

pytestmark = pytest.mark.slow

TEXT = "Ann Lee works for Acme. It rained. Tom lives in New York."
EXPECTED = [("Ann Lee", "works_for", "Acme"), ("Tom", "lives_in", "New York")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With the package, a trained model, `run`, and two texts."""
    folder = tmp_path_factory.mktemp("example") / "relations"
    shutil.copytree(
        CHECKOUT / "examples" / "relations", folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "texts.txt").write_text(f"{TEXT}\nIt rained.\n")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setenv("ELMO_TASKS_PACKAGES", "relations")
        monkeypatch.delenv("ELMO_TASKS_BILM", raising=False)
        monkeypatch.chdir(CHECKOUT)
        import_module_and_submodules("relations")
        train_model_from_file("examples/relations/relations.jsonnet", folder / "run")
        monkeypatch.chdir(folder)
        yield folder


def relations_in(result: list[dict]) -> list[tuple]:
    triples = []
    for relation in result:
        triples.append((relation["head"]["text"], relation["label"], relation["tail"]["text"]))
    return triples


def read_lines(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_python(folder):
    task = TrainedTask("run", threshold=0.5)
    assert relations_in(task(TEXT)) == EXPECTED
    assert task.result_type.labels == ["lives_in", "works_for"]
    frame = task.frame([TEXT, "It rained."])
    assert list(frame["document"]) == [0, 0]
    assert list(frame["head"]) == ["Ann Lee", "Tom"]
    assert list(frame["tail_start"]) == [18, 48]
    types = task.frame(TEXT).dtypes.to_dict()
    assert len(types) == 9
    assert task.frame("It rained.").dtypes.to_dict() == types
    html = task.render(TEXT)
    # Each also hidden, as the space that it needs.
    assert html.count("works_for") == html.count("lives_in") == 2


def test_spacy(folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_task", name="relations", config={"model": "run"})
    assert relations_in(nlp(TEXT)._.results["relations"]) == EXPECTED
    assert [*nlp.pipe_labels["relations"]] == ["lives_in", "works_for"]


def test_http(folder, monkeypatch):
    testclient = pytest.importorskip("fastapi.testclient")
    serve = pytest.importorskip("elmo_tasks.web.serve")
    monkeypatch.setenv("ELMO_TASKS_SERVE", "run")
    with testclient.TestClient(serve.make_app(), base_url="http://localhost") as client:
        result = client.post("/run", json={"text": TEXT}).json()
        (result_in_batch,) = client.post("/run/batch", json={"inputs": [{"text": TEXT}]}).json()
    assert relations_in(result) == EXPECTED
    assert relations_in(result_in_batch) == EXPECTED


def test_a_corpus(folder, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    for output in ("out.jsonl", "out.parquet", "out.spacy", "out/"):
        assert main(["annotate", "run", "texts.txt", output]) == 0
    rows = read_lines("out.jsonl")
    assert [relations_in(row["run"]) for row in rows] == [EXPECTED, []]
    docs = DocBin().from_disk("out.spacy").get_docs(spacy.blank("en").vocab)
    for doc, row in zip(docs, rows, strict=True):
        assert list(doc._.results["run"]) == row["run"]
    assert parquet.read_table("out.parquet").to_pylist() == rows
    assert Path("out", "1.ann").read_text().splitlines() == [
        "T1\thead 0 7\tAnn Lee",
        "T2\ttail 18 22\tAcme",
        "T3\thead 35 38\tTom",
        "T4\ttail 48 56\tNew York",
        "R1\tworks_for Arg1:T1 Arg2:T2",
        "R2\tlives_in Arg1:T3 Arg2:T4",
    ]
    settings = Path("out", "annotation.conf").read_text().splitlines()
    assert "works_for Arg1:head|tail, Arg2:head|tail" in settings
    assert main(["annotate", "run", "texts.txt", "out.conllu"]) == 1
    message = capsys.readouterr().err
    assert "expected what .conllu has a place for, got the results of run" in message


@pytest.mark.weekly
def test_new_processes_import_the_package(folder):
    annotate = "elmo_tasks annotate run texts.txt workers.jsonl --include-package relations"
    workers = "--workers 2 --part-texts 1"
    command = [sys.executable, "-m", *annotate.split(), *workers.split()]
    environment = os.environ | {"ELMO_TASKS_PACKAGES": "", "PYTHONPATH": f"{CHECKOUT}:{folder}"}
    subprocess.run(command, cwd=folder, env=environment, check=True)
    rows = read_lines("workers.jsonl")
    assert [relations_in(row["run"]) for row in rows] == [EXPECTED, []]
