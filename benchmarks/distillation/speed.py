"""
How fast students are, in turns with what they learn from: see README.md in this folder.

`bilm`: words/s of biLMs on the first sentences of a text, in one call. `models`: texts/s of archives on the first
instances of a file that their dataset readers read, 64 at once. CPU time of this process, one thread, the median of the
rounds after the first; ratios are to the first that is named.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from allennlp.common.plugins import import_plugins
from allennlp.data import Instance
from allennlp.models import Model, load_archive

from elmo_tasks import Elmo
from elmo_tasks.files.text_lines import numbered_lines

_BATCH = 64
# By name: what is timed, and how many parameters it has.
_Runs = dict[str, tuple[Callable[[], object], int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("bilm", "models"))
    parser.add_argument("named", nargs="+", help="NAME=FOLDER, or the name of a biLM; or NAME=ARCHIVE")
    parser.add_argument("--text", type=Path, required=True, help="a sentence on each line, or a file of the task")
    parser.add_argument("--number", type=int, default=400, help="of sentences or instances")
    parser.add_argument("--rounds", type=int, default=6)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    import_plugins()
    named = dict((given.split("=", 1) if "=" in given else (given, given)) for given in arguments.named)
    make = _bilms if arguments.kind == "bilm" else _models
    runs, n_done, unit = make(named, arguments.text, arguments.number)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(arguments.rounds):
        for name, (run, _) in runs.items():
            start = time.process_time()
            run()
            seconds[name].append(time.process_time() - start)
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    first = next(iter(medians.values()))
    print(f"{n_done:,} {unit}")
    for name, median in medians.items():
        print(f"{name:12} {runs[name][1]:12,} parameters {n_done / median:10,.0f} {unit}/s {first / median:8.2f} x")


def _bilms(named: Mapping[str, str], text: Path, number: int) -> tuple[_Runs, int, str]:
    sentences = [line.split() for _, line in islice(numbered_lines(text), number)]
    runs: _Runs = {}
    for name, bilm in named.items():
        elmo = Elmo.from_pretrained(bilm, device="cpu")
        runs[name] = (
            partial(elmo.embed, sentences, progress=False),
            sum(weight.numel() for weight in elmo.bilm.parameters()),
        )
    return runs, sum(map(len, sentences)), "words"


def _models(named: Mapping[str, str], text: Path, number: int) -> tuple[_Runs, int, str]:
    runs: _Runs = {}
    for name, path in named.items():
        archive = load_archive(path)
        instances = list(islice(archive.validation_dataset_reader.read(str(text)), number))
        runs[name] = (
            partial(_predict, archive.model, instances),
            sum(weight.numel() for weight in archive.model.parameters()),
        )
    return runs, len(instances), "texts"


def _predict(model: Model, instances: list[Instance]) -> None:
    for start in range(0, len(instances), _BATCH):
        model.forward_on_instances(instances[start : start + _BATCH])


if __name__ == "__main__":
    main()
