"""
Several trained models on the same paragraphs, which share one pass of the biLM: CPU seconds and
words per CPU second in one pipeline of spaCy, in `annotate`, and for each task, and the largest
memory. To compare two versions by turns, name the folder of the other one:
`python benchmarks/shared_pass.py ner srl coref sst pos --other ../before`
"""

import argparse
import gc
import json
import lzma
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spacy
import torch

from elmo_tasks import TrainedTask
from elmo_tasks.corpora.annotate import annotate_file

TEXT = Path(__file__).resolve().parents[1] / "data" / "open" / "squad" / "dev.json.xz"


def paragraphs(number: int) -> list[str]:
    """Paragraphs of articles, every tenth."""
    articles = json.loads(lzma.decompress(TEXT.read_bytes()))["data"]
    texts: list[str] = []
    for article in articles:
        texts += [paragraph["context"] for paragraph in article["paragraphs"]]
    return texts[::10][:number]


def pipeline(tasks: list[str]) -> Callable[[list[str]], Any]:
    nlp = spacy.blank("en")
    for name in tasks:
        nlp.add_pipe(f"elmo_{name}")
    return lambda texts: list(nlp.pipe(texts))


def annotate(tasks: list[str]) -> Callable[[list[str]], Any]:
    def write(texts: list[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "texts.txt").write_text("\n".join(texts) + "\n", "utf-8")
            annotate_file(tasks, Path(folder, "texts.txt"), Path(folder, "out.jsonl"))

    return write


ENTRY_POINTS = {"pipeline": pipeline, "annotate": annotate}
# Its pronouns load the tagger of `coref`.
SHORT = "Ann met her brother. He was tired."


def cpu_seconds(run: Callable[[list[str]], Any], texts: list[str]) -> float:
    start = time.process_time()
    run(texts)
    return time.process_time() - start


def seconds_at(entry_point: str, tasks: list[str], texts: list[str]) -> float:
    """CPU seconds for the texts, after a first one has loaded the models."""
    # Not the layers of the entry point before.
    gc.collect()
    run: Callable[[list[str]], Any]
    if entry_point in ENTRY_POINTS:
        run = ENTRY_POINTS[entry_point](tasks)
    else:
        run = TrainedTask(entry_point)
    run([SHORT])
    overhead = cpu_seconds(run, [SHORT])
    seconds = cpu_seconds(run, texts)
    if entry_point == "annotate":
        # For each corpus, the models are loaded again.
        seconds -= overhead
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument(
        "--entry-points", help="pipeline,annotate, and names of tasks; default: all"
    )
    parser.add_argument("--paragraphs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--other", type=Path, help="the checkout of a different version")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    entry_points = ["pipeline", "annotate", *arguments.tasks]
    if arguments.entry_points:
        entry_points = arguments.entry_points.split(",")
    texts = paragraphs(arguments.paragraphs)
    if arguments.once:
        torch.set_num_threads(1)
        figures = {}
        for entry_point in entry_points:
            figures[entry_point] = seconds_at(entry_point, arguments.tasks, texts)
        figures["GB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(figures))
        return
    checkouts = [Path(__file__).resolve().parents[1]]
    if arguments.other:
        checkouts.append(arguments.other.resolve())
    # For each checkout, the least seconds and memory.
    best: list[dict[str, float]] = [{} for _ in checkouts]
    for _ in range(arguments.turns):
        for checkout, best_figures in zip(checkouts, best, strict=True):
            for name, value in figures_of(checkout).items():
                best_figures[name] = min(best_figures.get(name, value), value)
    n_words = sum(len(text.split()) for text in texts)
    memory = " and ".join(f"{best_figures['GB']:.2f} GB" for best_figures in best)
    print(
        f"{len(texts)} paragraphs, {n_words:,} words, "
        f"the fastest of {arguments.turns} turns; memory {memory}"
    )
    for entry_point in entry_points:
        ours = best[0][entry_point]
        row = f"{entry_point:10} {ours:.2f} CPU s, {n_words / ours:,.0f} words/s"
        if arguments.other:
            theirs = best[1][entry_point]
            row += f"; other version {theirs:.2f} s: {theirs / ours:.2f} times"
        print(row)


def figures_of(checkout: Path) -> dict[str, float]:
    """One turn of a checkout, in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{checkout}:{checkout / 'allennlp_today'}",
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, *sys.argv[1:], "--once"]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    figures: dict[str, float] = json.loads(process.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
