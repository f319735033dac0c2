"""
Our embedder against AllenNLP's `elmo_token_embedder` at the input of the same model, with the same weights of the biLM,
data and seeds: scores, and what an epoch costs without the layer cache, which AllenNLP's does not have.
`ELMO_TASKS_DATA=DATA python benchmarks/allennlp_embedder.py --task ner --seeds 3 --output results.json`.

The settings are those of `training_configs/open.jsonnet`, and our scores those of its finished runs; for the seconds,
ours is trained for one epoch. AllenNLP's embedder starts a batch in the state of the last one, and has no L2 on the
weights of the mix but what the regularizer of the model gives it. A training that is finished is not done again.

Neither has layer normalisation, since the two differ in it. A task whose plan has it, as SNLI, is trained without it,
for our scores.
"""

import argparse
import copy
import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from finished_training import metrics_of, seconds_of_epoch

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.sealed_json import json_sha256
from elmo_tasks.replication import TASKS, Replication, Run, Variant, replication_of
from elmo_tasks.vectors.pretrained import pretrained_files

OURS, THEIRS = "ours", "AllenNLP's"
AT_INPUT = Variant(("input",))


def with_embedder_of_allennlp(config: dict[str, Any], bilm: str) -> dict[str, Any]:
    """The config of a model with ELMo at its input, with AllenNLP's classes in place of ours."""
    options, weights = map(str, pretrained_files(bilm))
    model = config["model"]
    del model["bilm"]
    model["text_field_embedder"]["token_embedders"]["elmo"] = {
        "type": "elmo_token_embedder",
        "options_file": options,
        "weight_file": weights,
        "do_layer_norm": False,
        "dropout": 0.0,
    }
    for reader in ("dataset_reader", "validation_dataset_reader"):
        if reader in config:
            config[reader]["token_indexers"]["elmo"] = {"type": "elmo_characters"}
    for regex in model.get("regularizer", {}).get("regexes", []):
        regex[0] = regex[0].replace("layer_weights", r"scalar_parameters\.\d")
    # Ours leaves the frozen biLM out of the checkpoints.
    del config["trainer"]["checkpointer"]
    return config


def without_layer_norm(config: dict[str, Any]) -> dict[str, Any]:
    config = copy.deepcopy(config)
    config["model"]["text_field_embedder"]["token_embedders"]["elmo"]["layer_norm"] = None
    return config


def trained(config: dict[str, Any], folder: Path, *, cached: bool = False) -> dict[str, Any]:
    """The metrics of a run, which is trained or resumed unless it is finished; `cached` permits the layer cache."""
    folder.mkdir(parents=True, exist_ok=True)
    config_file = folder / "config.json"
    if not config_file.exists():
        config_file.write_text(json.dumps(config))
    environment = {name: value for name, value in os.environ.items() if cached or name != "ELMO_TASKS_CACHE"}
    return metrics_of(config_file, folder, {}, environment, {"config": json_sha256(config)})


def row_of_ours(replication: Replication, task: str, seed: int, runs: Path) -> dict[str, Any]:
    run = replication.experiment.run(task, AT_INPUT, seed)
    dev, test = scores_of_ours(replication, run, runs)
    config = dict(run.config)
    config["trainer"] = {**config["trainer"], "num_epochs": 1}
    folder = runs / f"{task}-ours-{seed}"
    trained(config, folder)
    return {
        "task": task,
        "embedder": OURS,
        "seed": seed,
        "dev": dev,
        "test": test,
        "seconds_of_epoch": seconds_of_epoch(folder),
    }


def scores_of_ours(replication: Replication, run: Run, runs: Path) -> tuple[float, float]:
    """On dev and test."""
    config = without_layer_norm(run.config)
    if config != run.config:
        return scores_in(trained(config, runs / f"{run.task}-without_layer_norm-{run.seed}", cached=True), run.task)
    finished = replication.evidence.finished([run])
    if not finished:
        sys.exit(f"error: {run.name} must be a finished run of the plan: `allennlp elmo-tables --plan open`")
    return finished[0].dev, finished[0].test


def scores_in(metrics: dict[str, Any], task: str) -> tuple[float, float]:
    """On dev and test."""
    metric = TASKS[task].metric
    return 100 * metrics[f"best_validation_{metric}"], 100 * metrics[f"test_{metric}"]


def row_of_theirs(replication: Replication, task: str, seed: int, runs: Path) -> dict[str, Any]:
    config = dict(replication.experiment.run(task, AT_INPUT, seed).config)
    folder = runs / f"{task}-allennlp-{seed}"
    dev, test = scores_in(trained(with_embedder_of_allennlp(config, replication.plan.bilm), folder), task)
    return {
        "task": task,
        "embedder": THEIRS,
        "seed": seed,
        "dev": dev,
        "test": test,
        "seconds_of_epoch": seconds_of_epoch(folder),
    }


def earlier_rows(output: Path | None, task: str, first_seed: int) -> list[dict[str, Any]]:
    """Those of the seeds before the first one, which an earlier run has written."""
    wanted = [(embedder, seed) for seed in range(1, first_seed) for embedder in (OURS, THEIRS)]
    known: list[dict[str, Any]] = json.loads(output.read_text()) if wanted and output and output.exists() else []
    rows = [row for row in known if row["task"] == task and row["seed"] < first_seed]
    if [(row["embedder"], row["seed"]) for row in rows] != wanted:
        sys.exit(f"error: --output must have the rows of {task} of all seeds before {first_seed}: omit --first-seed")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="ner", choices=["ner", "snli"])
    parser.add_argument("--seeds", type=int, default=3, help="seeds up to this one; default: 3")
    parser.add_argument("--first-seed", type=int, default=1, help="those before it stay as the output has them")
    parser.add_argument("--runs", type=Path, default=Path("results/runs"), help="the files of the plan's finished runs")
    parser.add_argument("--results", type=Path, default=Path("output/allennlp_embedder"), help="the folder to train in")
    parser.add_argument("--output", type=Path, help="a JSON file, written after each run")
    arguments = parser.parse_args()
    replication = replication_of("open", data=None, results=arguments.results, runs=arguments.runs)
    if problem := replication.missing_data.get(arguments.task):
        sys.exit(f"error: {problem}")
    rows = earlier_rows(arguments.output, arguments.task, arguments.first_seed)
    for seed in range(arguments.first_seed, arguments.seeds + 1):
        for row_of in (row_of_ours, row_of_theirs):
            rows.append(row_of(replication, arguments.task, seed, arguments.results))
            print(json.dumps(rows[-1]), flush=True)
            if arguments.output:
                with atomic_file(arguments.output) as path:
                    path.write_text(json.dumps(rows, indent=1) + "\n")
    for key in ("dev", "test", "seconds_of_epoch"):
        values = {name: [row[key] for row in rows if row["embedder"] == name] for name in (OURS, THEIRS)}
        means = "   ".join(f"{name} {statistics.mean(of_name):.2f}" for name, of_name in values.items())
        differences = [theirs - ours for ours, theirs in zip(values[OURS], values[THEIRS], strict=True)]
        print(f"{key:16} {means}   AllenNLP's less ours, by seed: {', '.join(f'{d:+.2f}' for d in differences)}")


if __name__ == "__main__":
    main()
