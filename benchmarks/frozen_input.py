"""
Frozen models at the input of a task, where ELMo is: transformers, with the vector of a word's first piece or the mean
of its pieces, and biLMs:

    ELMO_TASKS_DATA=DATA python benchmarks/frozen_input.py OUTPUT --models first=FOLDER:first mean=FOLDER \\
        --tasks ner --seeds 1 2 3 --results results/transformers/NAME

The model `none` is the task without a model, which parts of speech do not have. The settings are those of
`training_configs/open.jsonnet`, and `snli_small` and `sst_small` have less to train on. Each finished run is a file in
`--results`; what is there of the same weights and pooling is not trained again, and the same command resumes.
`ELMO_TASKS_CACHE` lets the runs of a task share the layers. At the end the means are printed, what each model gains on
the first of them with each seed, and the means of the plan's runs with the same seeds where it has them.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any, NamedTuple

from finished_training import metrics_of

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.replication.train.surroundings import commit

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "benchmarks" / "equal_cost" / "input.jsonnet"
METRIC = {
    "ner": "f1-measure-overall",
    "pos": "accuracy",
    "snli": "accuracy",
    "snli_small": "accuracy",
    "sst": "accuracy",
    "sst_small": "accuracy",
}
POOLINGS = ("first", "mean")


class Frozen(NamedTuple):
    """A model as the command line has it, with the digest of its weights."""

    name: str
    # `None` where there is no model.
    folder: Path | None
    # `None` where there is no transformer.
    pooling: str | None
    weights: str | None

    @classmethod
    def of(cls, argument: str) -> "Frozen":
        """From `NAME=FOLDER`, `NAME=FOLDER:first`, `NAME=FOLDER:mean` or `none`."""
        if argument == "none":
            return cls("none", None, None, None)
        name, _, place = argument.partition("=")
        head, _, tail = place.rpartition(":")
        folder, pooling = (Path(head), tail) if tail in POOLINGS else (Path(place), "mean")
        bilm, transformer = folder / "weights.hdf5", folder / "model.safetensors"
        if not name.isidentifier() or not (bilm.exists() or transformer.exists()):
            raise argparse.ArgumentTypeError(
                "must be none, NAME=FOLDER, NAME=FOLDER:first or NAME=FOLDER:mean, with letters for NAME and "
                f"weights.hdf5 or model.safetensors in FOLDER, but is {argument!r}"
            )
        if bilm.exists():
            return cls(name, folder, None, sha256_of(bilm)[:16])
        return cls(name, folder, pooling, sha256_of(transformer)[:16])

    def environment(self, task: str) -> dict[str, str]:
        """What the config reads of it."""
        if self.folder is None:
            return {"TASK": task, "MODEL": "none"}
        place = str(self.folder.resolve())
        return {"TASK": task, **({"MODEL": place} if self.pooling else {"MODEL": "bilm", "ELMO_TASKS_BILM": place})}

    def overrides(self, task: str, seed: int) -> dict[str, Any]:
        """What a run changes in the config."""
        embedder = "text_field_embedder.token_embedders.elmo." if task == "pos" else ""
        pooling = {f"model.{embedder}bilm.pooling": self.pooling} if self.pooling else {}
        return {**pooling, "random_seed": seed, "numpy_seed": seed, "pytorch_seed": seed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder for the runs")
    parser.add_argument("--models", nargs="+", type=Frozen.of, required=True, metavar="NAME=FOLDER[:POOLING]|none")
    parser.add_argument("--tasks", nargs="+", choices=tuple(METRIC), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--results", type=Path, required=True, help="folder for a file of each run")
    arguments = parser.parse_args()
    if not os.environ.get("ELMO_TASKS_DATA"):
        parser.error(
            "ELMO_TASKS_DATA must name the data: scores of the small data that ships would stand next to others"
        )
    names = [model.name for model in arguments.models]
    if len(set(names)) < len(names):
        parser.error(f"the names of --models must differ, but are {', '.join(names)}")

    for task in arguments.tasks:
        # A linear classifier of the layers.
        models = [model for model in arguments.models if task != "pos" or model.folder is not None]
        for seed in arguments.seeds:
            for model in models:
                file = file_of(arguments.results, task, model.name, seed)
                if not file.exists():
                    score(model, task, seed, arguments.output / file.stem, file)
                elif changed := changes(json.loads(file.read_text()), model):
                    sys.exit(f"frozen_input.py: error: {file} is of other {changed}: give the model another name")
        if models:
            print_means(arguments.results, task, [model.name for model in models], arguments.seeds)


def file_of(results: Path, task: str, name: str, seed: int) -> Path:
    return results / f"{task}-{name}-{seed}.json"


def changes(result: dict[str, Any], model: Frozen) -> str:
    """In what a finished run differs from a model, in words."""
    expected = {"weights": model.weights, "pooling": model.pooling}
    return " and ".join(key for key, value in expected.items() if result[key] != value)


def score(model: Frozen, task: str, seed: int, run: Path, file: Path) -> None:
    """One run, which is trained or resumed, and its file."""
    identity = {"task": task, "seed": seed, "weights": model.weights, "pooling": model.pooling}
    metrics = metrics_of(CONFIG, run, model.overrides(task, seed), {**os.environ, **model.environment(task)}, identity)
    result = {
        "task": task,
        "model": model.name,
        "pooling": model.pooling,
        "seed": seed,
        "metric": METRIC[task],
        "dev": 100 * metrics[f"best_validation_{METRIC[task]}"],
        "test": 100 * metrics[f"test_{METRIC[task]}"],
        "best_epoch": metrics["best_epoch"] + 1,
        "weights": model.weights,
        "commit": commit() or "unknown",
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def print_means(results: Path, task: str, names: list[str], seeds: list[int]) -> None:
    """A line for each part of the data."""
    first, *others = names
    for part in ("dev", "test"):
        scores = {name: [score_in(file_of(results, task, name, seed), part) for seed in seeds] for name in names}
        shown = [f"{name} {mean_of(scores[name])}" for name in names]
        for name in others:
            gains = (f"{score - of_first:+.2f}" for score, of_first in zip(scores[name], scores[first], strict=True))
            shown.append(f"{name} less {first}, by seed: {', '.join(gains)}")
        for name, variant in (("without", "baseline"), ("ELMo", "input")):
            files = [ROOT / "results" / "runs" / task / variant / f"{seed}.json" for seed in seeds]
            if all(file.exists() for file in files):
                shown.append(f"plan, {name} {mean_of([score_in(file, part) for file in files])}")
        print(f"{task:5} {part:5} {'   '.join(shown)}")


def score_in(file: Path, part: str) -> float:
    value: float = json.loads(file.read_text())[part]
    return value


def mean_of(values: list[float]) -> str:
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
