"""A task outside the package with a kind of result of its own, at each door."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

pytestmark = pytest.mark.slow

TEXT = "Ann Lee works for Acme. It rained. Tom lives in New York."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a trained model, `run`."""
    folder = tmp_path_factory.mktemp("example") / "relations"
    shutil.copytree(CHECKOUT / "examples" / "relations", folder, ignore=shutil.ignore_patterns("__pycache__"))
    train = ["-m", "allennlp", "train", "examples/relations/relations.jsonnet", "-s", str(folder / "run")]
    train += ["--include-package", "relations"]
    environment = os.environ | {"PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, *train], cwd=CHECKOUT, env=environment, check=True, capture_output=True)
    return folder


def printed(folder: Path, program: str) -> list:
    """What a program that has the trained `task` and a `text` prints as JSON."""
    start = f"import json\nfrom elmo_tasks import TrainedTask\ntext = {TEXT!r}\n"
    environment = os.environ | {"ELMO_TASKS_PACKAGES": "relations", "PYTHONPATH": f"{CHECKOUT}:{folder}"}
    run = [sys.executable, "-c", start + program]
    output = subprocess.run(run, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def relations_in(result: list[dict]) -> list[tuple]:
    return [(each["head"]["text"], each["label"], each["tail"]["text"]) for each in result]


EXPECTED = [("Ann Lee", "works_for", "Acme"), ("Tom", "lives_in", "New York")]


def test_python(folder):
    result, rows, types, html, labels = printed(
        folder,
        """
task = TrainedTask("run", threshold=0.5)
frame = task.frame([text, "It rained."])
types = [[*map(str, task.frame(each).dtypes.items())] for each in (text, "It rained.")]
print(json.dumps([task(text), frame.to_dict("records"), types, task.render(text), task.kind.labels]))
""",
    )
    assert relations_in(result) == EXPECTED and labels == ["lives_in", "works_for"]
    assert [(row["document"], row["head"], row["tail_start"]) for row in rows] == [(0, "Ann Lee", 18), (0, "Tom", 48)]
    assert types[0] == types[1] and len(types[0]) == 9
    assert html.count("works_for") == 1 and html.count("lives_in") == 1


def test_spacy_and_http(folder):
    in_spacy, labels, answers = printed(
        folder,
        """
import os, spacy
from fastapi.testclient import TestClient
nlp = spacy.blank("en")
nlp.add_pipe("elmo_task", name="relations", config={"model": "run"})
found = nlp(text)._.results["relations"]
os.environ["ELMO_TASKS_SERVE"] = "run"
from elmo_tasks.serve import make_app
with TestClient(make_app()) as client:
    answers = [client.post("/run", json={"text": text}).json()]
    answers += client.post("/run/batch", json={"inputs": [{"text": text}]}).json()
print(json.dumps([found, [*nlp.pipe_labels["relations"]], answers]))
""",
    )
    assert [relations_in(result) for result in [in_spacy, *answers]] == [EXPECTED] * 3
    assert labels == ["lives_in", "works_for"]


def test_a_corpus(folder):
    (folder / "texts.txt").write_text(f"{TEXT}\nIt rained.\n")
    for output in ("out.jsonl", "out.parquet", "out.spacy", "out/"):
        annotate = ["-m", "elmo_tasks", "annotate", "run", "texts.txt", output, "--include-package", "relations"]
        subprocess.run([sys.executable, *annotate], cwd=folder, check=True, capture_output=True)
    rows = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [relations_in(row["run"]) for row in rows] == [EXPECTED, []]
    docs, table = printed(
        folder,
        """
import spacy
from pyarrow import parquet
from spacy.tokens import DocBin
docs = DocBin().from_disk("out.spacy").get_docs(spacy.blank("en").vocab)
print(json.dumps([[doc._.results["run"] for doc in docs], parquet.read_table("out.parquet").to_pylist()]))
""",
    )
    assert docs == [row["run"] for row in rows] and table == rows
    assert (folder / "out" / "1.ann").read_text().splitlines() == [
        "T1\thead 0 7\tAnn Lee",
        "T2\ttail 18 22\tAcme",
        "T3\thead 35 38\tTom",
        "T4\ttail 48 56\tNew York",
        "R1\tworks_for Arg1:T1 Arg2:T2",
        "R2\tlives_in Arg1:T3 Arg2:T4",
    ]
    assert "works_for Arg1:head, Arg2:tail" in (folder / "out" / "annotation.conf").read_text().splitlines()
    refused = ["-m", "elmo_tasks", "annotate", "run", "texts.txt", "out.conllu", "--include-package", "relations"]
    process = subprocess.run([sys.executable, *refused], cwd=folder, capture_output=True, text=True)
    assert process.returncode and "expected what .conllu has a place for, got the results of run" in process.stderr
