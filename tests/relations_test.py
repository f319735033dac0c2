"""A task outside the package with its own kind of result, at each door."""

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
    return [(each["head"]["text"], each["label"], each["tail"]["text"]) for each in result]


def test_python(folder):
    task = TrainedTask("run", threshold=0.5)
    assert relations_in(task(TEXT)) == EXPECTED and task.result_type.labels == [
        "lives_in",
        "works_for",
    ]
    rows = task.frame([TEXT, "It rained."]).to_dict("records")
    assert [(row["document"], row["head"], row["tail_start"]) for row in rows] == [
        (0, "Ann Lee", 18),
        (0, "Tom", 48),
    ]
    types = [task.frame(text).dtypes.to_dict() for text in (TEXT, "It rained.")]
    assert types[0] == types[1] and len(types[0]) == 9
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
        answers = [client.post("/run", json={"text": TEXT}).json()]
        answers += client.post("/run/batch", json={"inputs": [{"text": TEXT}]}).json()
    assert [relations_in(result) for result in answers] == [EXPECTED] * 2


def test_a_corpus(folder, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    for output in ("out.jsonl", "out.parquet", "out.spacy", "out/"):
        assert main(["annotate", "run", "texts.txt", output]) == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [relations_in(row["run"]) for row in rows] == [EXPECTED, []]
    docs = DocBin().from_disk("out.spacy").get_docs(spacy.blank("en").vocab)
    assert [[*doc._.results["run"]] for doc in docs] == [row["run"] for row in rows]
    assert parquet.read_table("out.parquet").to_pylist() == rows
    assert Path("out", "1.ann").read_text().splitlines() == [
        "T1\thead 0 7\tAnn Lee",
        "T2\ttail 18 22\tAcme",
        "T3\thead 35 38\tTom",
        "T4\ttail 48 56\tNew York",
        "R1\tworks_for Arg1:T1 Arg2:T2",
        "R2\tlives_in Arg1:T3 Arg2:T4",
    ]
    assert (
        "works_for Arg1:head|tail, Arg2:head|tail"
        in Path("out", "annotation.conf").read_text().splitlines()
    )
    assert main(["annotate", "run", "texts.txt", "out.conllu"]) == 1
    assert (
        "expected what .conllu has a place for, got the results of run" in capsys.readouterr().err
    )


@pytest.mark.weekly
def test_new_processes_import_the_package(folder):
    annotate = [
        "-m",
        "elmo_tasks",
        "annotate",
        "run",
        "texts.txt",
        "workers.jsonl",
        "--include-package",
        "relations",
    ]
    command = [sys.executable, *annotate, "--workers", "2", "--part-texts", "1"]
    environment = os.environ | {"ELMO_TASKS_PACKAGES": "", "PYTHONPATH": f"{CHECKOUT}:{folder}"}
    subprocess.run(command, cwd=folder, env=environment, check=True)
    rows = [json.loads(line) for line in Path("workers.jsonl").read_text().splitlines()]
    assert [relations_in(row["run"]) for row in rows] == [EXPECTED, []]
