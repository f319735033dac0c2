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
    return [paragraph["context"] for article in articles for paragraph in article["paragraphs"]][
        ::10
    ][:number]


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


DOORS = {"pipeline": pipeline, "annotate": annotate}


def seconds_at(door: str, tasks: list[str], texts: list[str]) -> float:
    """
    CPU seconds for the texts, after a first one has loaded the models. For each corpus, they are
    loaded again.
    """
    # Not the layers of the door before.
    gc.collect()
    run = DOORS[door](tasks) if door in DOORS else TrainedTask(door)
    # Its pronouns load the tagger of `coref`.
    run(["Ann met her brother. He was tired."])
    start = time.process_time()
    run(["Ann met her brother. He was tired."])
    middle = time.process_time()
    run(texts)
    return time.process_time() - middle - (middle - start if door == "annotate" else 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--doors", help="pipeline,annotate, and names of tasks; default: all")
    parser.add_argument("--paragraphs", type=int, default=20)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--other", type=Path, help="the checkout of a different version")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    doors = (
        arguments.doors.split(",")
        if arguments.doors
        else ["pipeline", "annotate", *arguments.tasks]
    )
    texts = paragraphs(arguments.paragraphs)
    if arguments.once:
        torch.set_num_threads(1)
        seconds = {door: seconds_at(door, arguments.tasks, texts) for door in doors}
        print(
            json.dumps(seconds | {"GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20})
        )
        return
    versions = [
        Path(__file__).resolve().parents[1],
        *([arguments.other.resolve()] if arguments.other else []),
    ]
    found: list[dict[str, float]] = [dict.fromkeys([*doors, "GB"], float("inf")) for _ in versions]
    for _ in range(arguments.turns):
        for folder, best in zip(versions, found, strict=True):
            environment = {
                **os.environ,
                "PYTHONPATH": f"{folder}:{folder / 'allennlp_today'}",
                "OMP_NUM_THREADS": "1",
            }
            output = subprocess.run(
                [sys.executable, __file__, *sys.argv[1:], "--once"],
                env=environment,
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
            for door, value in json.loads(output.splitlines()[-1]).items():
                best[door] = min(best[door], value)
    n_words = sum(len(text.split()) for text in texts)
    memory = " and ".join(f"{best['GB']:.2f} GB" for best in found)
    print(
        f"{len(texts)} paragraphs, {n_words:,} words, the fastest of {arguments.turns} turns; memory {memory}"
    )
    for door in doors:
        ours, *theirs = (best[door] for best in found)
        ratio = f"; other version {theirs[0]:.2f} s: {theirs[0] / ours:.2f} times" if theirs else ""
        print(f"{door:10} {ours:.2f} CPU s, {n_words / ours:,.0f} words/s{ratio}")


if __name__ == "__main__":
    main()
