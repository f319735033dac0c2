"""
What the precision of the biLM changes in the models of `models/`:
`python tools/precisions.py DATA [TASK ...]`, on the first 300 texts (of `coref`, 10 documents) of
each test set. DATA is what `allennlp elmo-data open --to DATA` wrote. Prints the rows of the table
in docs/tasks/use.md, with the seconds of CPU time.
"""

import sys
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from elmo_tasks import TrainedTask
from elmo_tasks.bilm.precision import Precision
from elmo_tasks.files.shipped import MODELS

FILES = {
    "ner": ("ner_general/test.txt", "f1-measure-overall"),
    "pos": ("pos/test.conllu", "accuracy"),
    "srl": ("srl/test", "f1"),
    "coref": ("coref/test.conll", "coref_f1"),
    "squad": ("squad/dev.json", "f1"),
    "snli": ("snli/test.jsonl", "accuracy"),
    "sst": ("sst/test.txt", "accuracy"),
}
N_TEXTS = 300
N_DOCUMENTS = 10
BATCH_SIZE = 16
# What a task finds, in the outputs of its model.
ANSWERS = ("clusters", "tags", "best_span", "label")
# To compare with float32.
REDUCED: tuple[Precision, ...] = ("bf16", "int8")


@dataclass(frozen=True)
class Answers:
    """What is found in each text, the score in per cent, and the seconds of CPU time."""

    texts: list[str]
    score: float
    seconds: float


def answers(task: str, data: Path, precision: Precision) -> Answers:
    file, metric = FILES[task]
    # Not shared with a model of a different precision.
    trained = TrainedTask(MODELS / task, device="cpu", precision=precision)
    model: Any = trained.predictor._model
    reader: Any = trained.predictor._dataset_reader
    reader.reads_gold = True
    n_instances = N_DOCUMENTS if task == "coref" else N_TEXTS
    instances = list(islice(reader.read(str(data / file)), n_instances))
    texts = []
    start = time.process_time()
    for first in range(0, len(instances), BATCH_SIZE):
        for output in model.forward_on_instances(instances[first : first + BATCH_SIZE]):
            key = next(key for key in ANSWERS if key in output)
            texts.append(repr(output[key]))
    score = 100 * model.get_metrics()[metric]
    return Answers(texts, score, time.process_time() - start)


def main() -> None:
    torch.set_num_threads(1)
    data = Path(sys.argv[1])
    tasks = sys.argv[2:] or list(FILES)
    for task in tasks:
        exact = answers(task, data, "float32")
        cells = [f"{exact.score:.1f}"]
        for precision in REDUCED:
            reduced = answers(task, data, precision)
            n_texts = len(exact.texts)
            n_changed = 0
            for exact_text, reduced_text in zip(exact.texts, reduced.texts, strict=True):
                n_changed += exact_text != reduced_text
            cells += [
                f"{n_changed} of {n_texts}",
                f"{reduced.score:.1f}",
                f"{reduced.seconds / exact.seconds:.2f}",
            ]
        print(f"| {task} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
