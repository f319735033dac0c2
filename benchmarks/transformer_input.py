"""
A frozen transformer at the input of a task, where ELMo is, with the vector of a word's first piece and with the mean of
its pieces: `ELMO_TASKS_DATA=DATA python benchmarks/transformer_input.py CHECKPOINT OUTPUT --tasks ner --seeds 1 2 3`.

The settings are those of `training_configs/open.jsonnet`. Each finished run is a file in `--results`; what is there of
the same checkpoint is not trained again, and the same command resumes. `ELMO_TASKS_CACHE` lets the runs of a task share
the layers. At the end the means are printed, beside those of the plan's runs with the same seeds where it has them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.replication.train.surroundings import commit

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "benchmarks" / "equal_cost" / "input.jsonnet"
METRIC = {"ner": "f1-measure-overall", "pos": "accuracy", "snli": "accuracy", "sst": "accuracy"}
POOLINGS = ("first", "mean")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, help="folder of a transformer")
    parser.add_argument("output", type=Path, help="folder for the runs")
    parser.add_argument("--tasks", nargs="+", choices=tuple(METRIC), required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--name", help="of the checkpoint in the results; by default that of its folder")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "transformers")
    arguments = parser.parse_args()

    results = arguments.results / (arguments.name or arguments.checkpoint.resolve().name)
    weights = sha256_of(arguments.checkpoint / "model.safetensors")[:16]
    for task in arguments.tasks:
        for seed in arguments.seeds:
            for pooling in POOLINGS:
                file = results / f"{task}-{pooling}-{seed}.json"
                if not file.exists():
                    score(arguments, weights, task, pooling, seed, file)
                elif json.loads(file.read_text())["weights"] != weights:
                    sys.exit(f"transformer_input.py: error: {file} is of other weights: give this checkpoint a --name")
    print_table(results)


def score(arguments: argparse.Namespace, weights: str, task: str, pooling: str, seed: int, file: Path) -> None:
    """One run, which is trained or resumed, and its file."""
    run = arguments.output / f"{task}-{pooling}-{seed}"
    command = [sys.executable, "-m", "allennlp", "train", str(CONFIG), "-s", str(run)]
    command += ["-o", json.dumps(overrides(task, pooling, seed))]
    if run.exists():
        command.append("--recover")
    environment = {**os.environ, "TASK": task, "MODEL": str(arguments.checkpoint.resolve())}
    subprocess.run(command, check=True, env=environment)
    metrics = json.loads((run / "metrics.json").read_text())
    result = {
        "task": task,
        "pooling": pooling,
        "seed": seed,
        "metric": METRIC[task],
        "dev": 100 * metrics[f"best_validation_{METRIC[task]}"],
        "test": 100 * metrics[f"test_{METRIC[task]}"],
        "best_epoch": metrics["best_epoch"] + 1,
        "weights": weights,
        "commit": commit() or "unknown",
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def overrides(task: str, pooling: str, seed: int) -> dict[str, Any]:
    """What a run changes in the config."""
    embedder = "text_field_embedder.token_embedders.elmo." if task == "pos" else ""
    seeds = {"random_seed": seed, "numpy_seed": seed, "pytorch_seed": seed}
    return {f"model.{embedder}bilm.pooling": pooling, **seeds}


def print_table(results: Path) -> None:
    """Means over the seeds, and what the mean of the pieces gains with each seed."""
    runs = [json.loads(file.read_text()) for file in sorted(results.glob("*.json"))]
    for task in sorted({run["task"] for run in runs}):
        of = {
            pooling: {run["seed"]: run for run in runs if (run["task"], run["pooling"]) == (task, pooling)}
            for pooling in POOLINGS
        }
        seeds = sorted(set.intersection(*map(set, of.values())))
        for part in ("dev", "test"):
            means = "   ".join(f"{name} {mean_of(of[name][seed][part] for seed in seeds)}" for name in POOLINGS)
            gains = ", ".join(f"{of['mean'][seed][part] - of['first'][seed][part]:+.2f}" for seed in seeds)
            print(f"{task:5} {part:5} {means}   mean less first, by seed: {gains}   {of_plan(task, seeds, part)}")


def of_plan(task: str, seeds: list[int], part: str) -> str:
    """The runs of the plan with the same seeds: without ELMo, and with it at the input."""
    shown = []
    for name, variant in (("without", "baseline"), ("ELMo", "input")):
        files = [ROOT / "results" / "runs" / task / variant / f"{seed}.json" for seed in seeds]
        if files and all(file.exists() for file in files):
            shown.append(f"{name} {mean_of(json.loads(file.read_text())[part] for file in files)}")
    return "   ".join(shown)


def mean_of(values: Any) -> str:
    values = list(values)
    if not values:
        return "none"
    return f"{statistics.mean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
