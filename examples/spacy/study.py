"""
Runs the project for all tasks, embeddings and seeds, one after the other, and prints their scores
and costs. A run with a file in study/ is done.

    python -m spacy project run data && OMP_NUM_THREADS=1 python study.py
"""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from time import process_time

import pandas as pd
import spacy
from spacy.tokens import Doc, DocBin

# The numbers of training sentences and of epochs, and the scores.
TASKS = {
    "ner": (0, 6, {"ents_f": "F1"}),
    "syntax": (3000, 4, {"tag_acc": "tags", "dep_uas": "UAS", "dep_las": "LAS"}),
    "textcat": (8000, 4, {"cats_micro_f": "accuracy"}),
}
EMBEDDINGS = ("hash", "glove", "elmo", "elmo_hash")
SEEDS = (0, 1, 2)


def run(task: str, embed: str, seed: int) -> pd.Series:
    """The scores and costs of one run."""
    name, (sentences, epochs, scores) = f"{task}_{embed}_{seed}", TASKS[task]
    done = Path("study", f"{name}.json")
    if not done.exists():
        settings = {
            "task": task,
            "embed": embed,
            "seed": seed,
            "epochs": epochs,
            "sentences": sentences,
        }
        project("config", settings)
        training = project("train", settings)
        project("evaluate", settings)
        model = Path("training", name, "model-best")
        found = json.loads(Path("metrics", f"{name}.json").read_text("utf-8"))
        values = {
            **{title: 100 * found[score] for score, title in scores.items()},
            "CPU minutes": (training.ru_utime + training.ru_stime) / 60,
            "words per second": words_per_second(model, Path("corpus", task, "test.spacy")),
            "MB on disk": sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
            / 1e6,
            "peak MB": training.ru_maxrss / 1e3,
        }
        done.parent.mkdir(exist_ok=True)
        done.write_text(json.dumps(values), "utf-8")
    return pd.Series(json.loads(done.read_text("utf-8")))


def project(step: str, settings: dict[str, object]) -> "os.struct_rusage":
    """Runs a step of the project, and returns the resources that it has used."""
    variables = [
        word for name, value in settings.items() for word in (f"--vars.{name}", str(value))
    ]
    process = subprocess.Popen([sys.executable, "-m", "weasel", "run", step, ".", *variables])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{step} failed: {settings}")
    return usage


def words_per_second(model: Path, test: Path) -> float:
    """Of the first 500 documents of the test set, in CPU time."""
    nlp = spacy.load(model)
    docs = [
        Doc(nlp.vocab, words=[token.text for token in doc])
        for doc in DocBin().from_disk(test).get_docs(nlp.vocab)
    ]
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
    runs = {key: run(*key[1:], key[0]) for key in product(SEEDS, TASKS, EMBEDDINGS)}
    rows = [(*key, *value) for key, values in runs.items() for value in values.items()]
    frame = pd.DataFrame(rows, columns=["seed", "task", "model", "measure", "value"])
    frame.to_csv("study/rows.csv", index=False)
    for task, of_task in frame.groupby("task", sort=False):
        groups = of_task.groupby(["model", "measure"], sort=False)["value"]
        cells = groups.mean().round(1).astype(str) + " ± " + groups.std().round(1).astype(str)
        print(task, cells.unstack(), sep="\n")


if __name__ == "__main__":
    main()
