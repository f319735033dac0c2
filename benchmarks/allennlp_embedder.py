"""
Our embedder against AllenNLP's `elmo_token_embedder` at the input of the same model, with the same weights of the biLM,
data and seeds: scores, and what an epoch costs without the layer cache, which AllenNLP's does not have.
`ELMO_TASKS_DATA=DATA python benchmarks/allennlp_embedder.py --task ner --seeds 3 --output results.json`.

The settings are those of `training_configs/open.jsonnet`. AllenNLP's embedder starts a batch in the state of the last
one, and has no L2 on the weights of the mix but what the regularizer of the model gives it. A run that is finished
is not trained again.
"""

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any

from finished_training import metrics_of, seconds_of_epoch

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.sealed_json import json_sha256
from elmo_tasks.replication import TASKS, PlanFile, Variant, experiment_of
from elmo_tasks.vectors.pretrained import pretrained_files

OURS, THEIRS = "ours", "AllenNLP's"


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


def scores(config: dict[str, Any], folder: Path, metric: str) -> dict[str, float]:
    """Of a run, which is trained or resumed unless it is finished."""
    folder.mkdir(parents=True, exist_ok=True)
    config_file = folder / "config.json"
    if not config_file.exists():
        config_file.write_text(json.dumps(config))
    environment = {name: value for name, value in os.environ.items() if name != "ELMO_TASKS_CACHE"}
    metrics = metrics_of(config_file, folder, {}, environment, {"config": json_sha256(config)})
    return {
        "dev": 100 * metrics[f"best_validation_{metric}"],
        "test": 100 * metrics[f"test_{metric}"],
        "seconds_of_epoch": seconds_of_epoch(folder),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="ner", choices=["ner", "snli"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bilm", default="small-open")
    parser.add_argument("--overrides", type=json.loads, default={}, help="JSON, in addition to those of the plan")
    parser.add_argument("--runs", type=Path, default=Path("output/allennlp_embedder"))
    parser.add_argument("--output", type=Path, help="a JSON file, written after each run")
    arguments = parser.parse_args()
    settings = PlanFile.from_file("open").settings()
    experiment = experiment_of(
        data=None,
        bilm=arguments.bilm,
        results=arguments.runs,
        overrides={arguments.task: {**settings["overrides"].get(arguments.task, {}), **arguments.overrides}},
        arguments=settings["arguments"],
        names=settings["names"],
    )
    metric = TASKS[arguments.task].metric
    rows: list[dict[str, Any]] = []
    for seed in range(1, arguments.seeds + 1):
        for embedder in (OURS, THEIRS):
            config = dict(experiment.run(arguments.task, Variant(("input",)), seed).config)
            if embedder == THEIRS:
                config = with_embedder_of_allennlp(config, arguments.bilm)
            folder = arguments.runs / f"{arguments.task}-{'ours' if embedder == OURS else 'allennlp'}-{seed}"
            rows.append({"task": arguments.task, "embedder": embedder, "seed": seed, **scores(config, folder, metric)})
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
