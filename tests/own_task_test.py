"""A task in a user's folder: trained, used and shown without a change in the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

pytestmark = pytest.mark.weekly

PROGRAM = """
import json, sys
from pathlib import Path
import spacy
from elmo_tasks import TrainedTask

task = TrainedTask(sys.argv[1])
results = task(["Who sang in Rome?", "She sang in Rome.", " "])
nlp = spacy.blank("en")
nlp.add_pipe("elmo_task", name="questions", config={"model": sys.argv[1]})
in_spacy = nlp("Who sang in Rome?")._.results["questions"]
try:
    from elmo_tasks.demo.tasks import TaskArchive

    shown = TaskArchive(Path(sys.argv[1]), "en").values("Who sang in Rome?")[0]
except ModuleNotFoundError:
    shown = task.render("Who sang in Rome?")
print(json.dumps([task.task, results, in_spacy, shown]))
"""


def test_a_task_of_ones_own(tmp_path: Path):
    folder = tmp_path / "own_task"
    shutil.copytree(CHECKOUT / "examples" / "own_task", folder, ignore=shutil.ignore_patterns("__pycache__"))
    train = ["-m", "allennlp", "train", "questions.jsonnet", "-s", "run", "--include-package", "questions"]
    subprocess.run([sys.executable, *train], cwd=folder, check=True)
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, "run/model.tar.gz"],
        cwd=folder,
        env=os.environ | {"ELMO_TASKS_PACKAGES": "questions"},
        check=True,
        capture_output=True,
        text=True,
    )
    name, (question, statement, empty), in_spacy, shown = json.loads(found.stdout.splitlines()[-1])
    assert name == "questions" and empty == {}
    assert question["yes"] > 0.5 > statement["yes"]
    assert in_spacy == pytest.approx(question) and "<div>yes</div>" in shown and f"{question['yes']:.2f}" in shown
    (folder / "texts.txt").write_text("Who sang in Rome?\nShe sang in Rome.\n")
    annotate = ["-m", "elmo_tasks", "annotate", "run", "texts.txt", "out.jsonl", "--include-package", "questions"]
    subprocess.run([sys.executable, *annotate, "--workers", "2", "--part-texts", "1"], cwd=folder, check=True)
    rows = [json.loads(line)["run"] for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [row["yes"] for row in rows] == pytest.approx([question["yes"], statement["yes"]])
