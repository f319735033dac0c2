"""
What the precision of the biLM changes in the models of `models/`:
`python tools/precisions.py DATA [TASK ...]`, on the first 300 texts (of `coref`, 10 documents) of
each test set. DATA is what `allennlp elmo-data open --to DATA` wrote. Prints the rows of the table
in docs/tasks/use.md, with the seconds of CPU time.
"""

import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from elmo_tasks import TrainedTask
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
N_TEXTS, N_DOCUMENTS, BATCH = 300, 10, 16
# What a task finds, in the outputs of its model.
ANSWERS = ("clusters", "tags", "best_span", "label")


def answers(task: str, data: Path, precision: Any) -> tuple[list[Any], float, float]:
    """What is found in each text, the score, and the seconds."""
    file, metric = FILES[task]
    # Not shared with a model of a different precision.
    trained = TrainedTask(MODELS / task, device="cpu", precision=precision)
    model, reader = trained.predictor._model, trained.predictor._dataset_reader
    reader.reads_gold = True
    instances = list(
        islice(reader.read(str(data / file)), N_DOCUMENTS if task == "coref" else N_TEXTS)
    )
    found = []
    start = time.process_time()
    for first in range(0, len(instances), BATCH):
        for output in model.forward_on_instances(instances[first : first + BATCH]):
            found.append(repr(output[next(key for key in ANSWERS if key in output)]))
    return found, 100 * model.get_metrics()[metric], time.process_time() - start


def main() -> None:
    torch.set_num_threads(1)
    data, tasks = Path(sys.argv[1]), sys.argv[2:] or list(FILES)
    for task in tasks:
        before, score, seconds = answers(task, data, "float32")
        cells = [f"{score:.1f}"]
        for precision in ("bf16", "int8"):
            after, score, of_precision = answers(task, data, precision)
            n_changed = sum(one != other for one, other in zip(before, after, strict=True))
            cells += [
                f"{n_changed} of {len(before)}",
                f"{score:.1f}",
                f"{of_precision / seconds:.2f}",
            ]
        print(f"| {task} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
