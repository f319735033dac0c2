"""
Scores and seconds per epoch of a task with our embedder and with AllenNLP's `elmo_token_embedder`
at the input, with the same biLM weights, data, settings (`training_configs/open.jsonnet`) and
seeds:
`ELMO_TASKS_DATA=DATA python benchmarks/allennlp_embedder.py --task ner --seeds 3
[--overrides JSON]`.

Neither uses the layer cache or layer normalisation, in which the two differ. Finished trainings are
not repeated. AllenNLP's embedder starts each batch in the LSTM state of the previous one.
"""

import argparse
import copy
import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from allennlp.common.plugins import import_plugins

from elmo_tasks.paper.numbers import TASKS
from elmo_tasks.paper.plan import Plan
from elmo_tasks.vectors.pretrained import pretrained_files


def with_embedder_of_allennlp(config: dict[str, Any], bilm: str) -> dict[str, Any]:
    options_file, weight_file = pretrained_files(bilm)
    config = copy.deepcopy(config)
    model = config["model"]
    del model["bilm"]
    model["text_field_embedder"]["token_embedders"]["elmo"] = {
        "type": "elmo_token_embedder",
        "options_file": str(options_file),
        "weight_file": str(weight_file),
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


def train(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The metrics of a training, which is run or continued if it is not finished."""
    if not (folder / "metrics.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        config_file = folder.with_suffix(".json")
        config_file.write_text(json.dumps(config))
        command = [sys.executable, "-m", "allennlp", "train", str(config_file), "-s", str(folder)]
        if (folder / "config.json").exists():
            command.append("--recover")
        environment = dict(os.environ)
        environment.pop("ELMO_TASKS_CACHE", None)
        with open(folder.with_suffix(".log"), "w") as log:
            subprocess.run(command, check=True, env=environment, stdout=log, stderr=log)
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics


def seconds_of_epochs(folder: Path) -> list[float]:
    zero = datetime(1900, 1, 1)
    seconds = []
    previous_end = 0.0
    for path in sorted(folder.glob("metrics_epoch_*.json"), key=lambda path: path.stat().st_mtime):
        duration = json.loads(path.read_text())["training_duration"]
        end = (datetime.strptime(duration, "%H:%M:%S.%f") - zero).total_seconds()
        seconds.append(end - previous_end)
        previous_end = end
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--task", choices=("ner", "snli", "sst", "squad"), default="ner")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--overrides", type=json.loads, default={})
    parser.add_argument("--results", type=Path, default=Path("output/allennlp_embedder"))
    arguments = parser.parse_args()
    import_plugins()
    changes = {"": {"overrides": arguments.overrides, "arguments": {"elmo": {"layer_norm": None}}}}
    plan = Plan("open", results=arguments.results, changes=changes, seeds=arguments.seeds)
    metric = TASKS[arguments.task].metric
    # The exhibit that has the variant with ELMo at the input.
    exhibit = "figure 2" if arguments.task == "ner" else "table 3"
    for run in plan.runs([exhibit], [arguments.task]):
        if run.variant != "input":
            continue
        theirs = with_embedder_of_allennlp(run.config, plan.variables["ELMO_TASKS_BILM"])
        embedders = (("ours", "ours", run.config), ("AllenNLP's", "Alle", theirs))
        for name, folder_name, config in embedders:
            folder = run.folder / folder_name
            metrics = train(config, folder)
            dev = 100 * metrics.get(f"best_validation_{metric}", 0)
            test = 100 * metrics.get(f"test_{metric}", 0)
            seconds = median(seconds_of_epochs(folder))
            scores = f"dev {dev:.2f} test {test:.2f}"
            print(f"{run.name} {name:10} {scores} {seconds:.0f} s/epoch", flush=True)


if __name__ == "__main__":
    main()
