"""
Runs the project for all tasks, embeddings and seeds, one after the other, and prints their scores
and costs. A run with a file in study/ is done.

    python -m spacy project run data && OMP_NUM_THREADS=1 python study.py
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import process_time

import pandas as pd
import spacy
from spacy.tokens import Doc, DocBin


@dataclass(frozen=True)
class TaskSettings:
    """The numbers of training sentences (0: all) and of epochs, and the titles of the scores."""

    sentences: int
    epochs: int
    scores: dict[str, str]


TASKS = {
    "ner": TaskSettings(0, 6, {"ents_f": "F1"}),
    "syntax": TaskSettings(3000, 4, {"tag_acc": "tags", "dep_uas": "UAS", "dep_las": "LAS"}),
    "textcat": TaskSettings(8000, 4, {"cats_micro_f": "accuracy"}),
}
EMBEDDINGS = ("hash", "glove", "elmo", "elmo_hash")
SEEDS = (0, 1, 2)


def run(task: str, embed: str, seed: int) -> dict[str, float]:
    """The scores and costs of one run, which is trained if it has no file yet."""
    file = Path("study", f"{task}_{embed}_{seed}.json")
    if not file.exists():
        values = train_and_measure(task, embed, seed)
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(values), "utf-8")
    measured: dict[str, float] = json.loads(file.read_text("utf-8"))
    return measured


def train_and_measure(task: str, embed: str, seed: int) -> dict[str, float]:
    settings = {
        "task": task,
        "embed": embed,
        "seed": seed,
        "epochs": TASKS[task].epochs,
        "sentences": TASKS[task].sentences,
    }
    project("config", settings)
    training = project("train", settings)
    project("evaluate", settings)
    name = f"{task}_{embed}_{seed}"
    metrics = json.loads(Path("metrics", f"{name}.json").read_text("utf-8"))
    values = {}
    for score, title in TASKS[task].scores.items():
        values[title] = 100 * metrics[score]
    model = Path("training", name, "model-best")
    n_bytes = sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
    values["CPU minutes"] = (training.ru_utime + training.ru_stime) / 60
    values["words per second"] = words_per_second(model, Path("corpus", task, "test.spacy"))
    values["MB on disk"] = n_bytes / 1e6
    values["peak MB"] = training.ru_maxrss / 1e3
    return values


def project(step: str, settings: dict[str, object]) -> "os.struct_rusage":
    """Runs a step of the project, and returns the resources that it has used."""
    command = [sys.executable, "-m", "weasel", "run", step, "."]
    for name, value in settings.items():
        command += [f"--vars.{name}", str(value)]
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{step} failed: {settings}")
    return usage


def words_per_second(model: Path, test: Path) -> float:
    """Of the first 500 documents of the test set, in CPU time."""
    nlp = spacy.load(model)
    docs = []
    for gold in DocBin().from_disk(test).get_docs(nlp.vocab):
        docs.append(Doc(nlp.vocab, words=[token.text for token in gold]))
    # Loads the biLM.
    nlp(docs[-1])
    start = process_time()
    n_words = sum(map(len, nlp.pipe(docs[:500])))
    return n_words / (process_time() - start)


def main() -> None:
    """
    Prints a table for each task, mean ± standard deviation of the seeds, and writes all values to
    study/rows.csv.
    """
    rows = []
    for seed, task, embed in product(SEEDS, TASKS, EMBEDDINGS):
        for measure, value in run(task, embed, seed).items():
            rows.append([seed, task, embed, measure, value])
    frame = pd.DataFrame(rows, columns=["seed", "task", "model", "measure", "value"])
    frame.to_csv("study/rows.csv", index=False)
    for task, task_rows in frame.groupby("task", sort=False):
        groups = task_rows.groupby(["model", "measure"], sort=False)["value"]
        means = groups.mean().round(1).astype(str)
        deviations = groups.std().round(1).astype(str)
        cells = means + " ± " + deviations
        print(task, cells.unstack(), sep="\n")


if __name__ == "__main__":
    main()
