"""
Time and memory of the trained models on long texts: `python benchmarks/lengths.py`.

Prints a table in Markdown. Each cell is measured in a new process, which loads the model, answers a
short text, and then a text of the given number of words, with full stops or the same words without:
the CPU time of the answer, the largest memory of the process (with the libraries and the model),
and in brackets how many times as long the text takes without full stops. The words are held-out
sentences of `data/open/`. For `squad` and `snli`, which take two texts, the other one is short.
"""

import argparse
import json
import lzma
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TypedDict

TEXT = Path(__file__).resolve().parent.parent / "data" / "open" / "lm" / "heldout.txt.xz"
TASKS = ("ner", "srl", "coref", "squad", "snli", "sst")
SHORT = "Ann met Paul in Paris."


class Measurement(TypedDict):
    """Seconds of CPU time, and the largest memory of the process."""

    seconds: float
    megabytes: float


def text_of(n_words: int, has_stops: bool) -> str:
    """The first words of the sentences, where a full stop is not a word."""
    words: list[str] = []
    with lzma.open(TEXT, "rt", encoding="utf-8") as file:
        for line in file:
            sentence = [word for word in line.split() if word not in {".", "!", "?"}]
            sentence = sentence[: n_words - len(words)]
            words += sentence
            if has_stops and sentence:
                words[-1] += "."
    if len(words) < n_words:
        raise ValueError(f"expected a text of {n_words} words, got {len(words)}: {TEXT}")
    return " ".join(words)


def measure(task: str, n_words: int, has_stops: bool) -> Measurement:
    import torch

    from elmo_tasks.predictors.trained_task import TrainedTask

    torch.set_num_threads(1)
    trained = TrainedTask(task)
    long = text_of(n_words, has_stops)
    trained(*inputs_of(task, SHORT))
    start = time.process_time()
    trained(*inputs_of(task, long))
    seconds = time.process_time() - start
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "megabytes": kilobytes / 1024}


def inputs_of(task: str, text: str) -> list[str]:
    """A text, and what a task needs with it."""
    if task == "squad":
        return ["Who wanted a memorial?", text]
    if task == "snli":
        return [text, "He wanted a memorial."]
    return [text]


def in_new_process(task: str, n_words: int, has_stops: bool, limit: float) -> Measurement | None:
    """The result of `measure`, or `None` after `limit` seconds."""
    command = [sys.executable, __file__, "--one", json.dumps([task, n_words, has_stops])]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if process.returncode:
        sys.exit(process.stderr)
    measurement: Measurement = json.loads(process.stdout.splitlines()[-1])
    return measurement


def cell(measured: Measurement | None, with_stops: Measurement | None, limit: float) -> str:
    """A measurement, and its ratio to the one with full stops."""
    if measured is None:
        return f"over {limit:.0f} s"
    seconds = measured["seconds"]
    ratio = ""
    if with_stops is not None:
        ratio = f" ({seconds / with_stops['seconds']:.1f})"
    return f"{seconds:.1f} s{ratio}, {measured['megabytes']:,.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--words", nargs="+", type=int, default=[500, 2000, 8000, 50_000])
    parser.add_argument(
        "--limit", type=float, default=600.0, help="seconds for a cell, including the start"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*json.loads(arguments.one))))
        return
    print("| task | full stops |", *(f"{n:,} words |" for n in arguments.words))
    print("|---|---" + "|---:" * len(arguments.words) + "|")
    for task in arguments.tasks:
        with_stops: dict[int, Measurement | None] = {}
        for has_stops in (True, False):
            print(f"| {task} | {'yes' if has_stops else 'no'} |", end="", flush=True)
            for n_words in arguments.words:
                measured = in_new_process(task, n_words, has_stops, arguments.limit)
                text = cell(measured, with_stops.get(n_words), arguments.limit)
                print(f" {text} |", end="", flush=True)
                if has_stops:
                    with_stops[n_words] = measured
            print(flush=True)


if __name__ == "__main__":
    main()
