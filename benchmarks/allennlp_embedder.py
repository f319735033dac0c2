"""
Scores and seconds per epoch of a task with our embedder and with AllenNLP's `elmo_token_embedder`
at the input, with the same biLM weights, data, settings (`training_configs/open.jsonnet`) and
seeds:
`ELMO_TASKS_DATA=DATA python benchmarks/allennlp_embedder.py --task ner --seeds 3 [--overrides JSON]`.

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
    options, weights = map(str, pretrained_files(bilm))
    config = copy.deepcopy(config)
    model = config["model"]
    del model["bilm"]
    embedder = {
        "type": "elmo_token_embedder",
        "options_file": options,
        "weight_file": weights,
        "do_layer_norm": False,
    }
    model["text_field_embedder"]["token_embedders"]["elmo"] = {**embedder, "dropout": 0.0}
    for reader in ("dataset_reader", "validation_dataset_reader"):
        if reader in config:
            config[reader]["token_indexers"]["elmo"] = {"type": "elmo_characters"}
    for regex in model.get("regularizer", {}).get("regexes", []):
        regex[0] = regex[0].replace("layer_weights", r"scalar_parameters\.\d")
    # Ours leaves the frozen biLM out of the checkpoints.
    del config["trainer"]["checkpointer"]
    return config


def train(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    if not (folder / "metrics.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        given, log = (folder.with_suffix(suffix) for suffix in (".json", ".log"))
        given.write_text(json.dumps(config))
        command = [sys.executable, "-m", "allennlp", "train", str(given), "-s", str(folder)]
        command += ["--recover"] * (folder / "config.json").exists()
        environment = {
            name: value for name, value in os.environ.items() if name != "ELMO_TASKS_CACHE"
        }
        with open(log, "w") as file:
            subprocess.run(command, check=True, env=environment, stdout=file, stderr=file)
    return json.loads((folder / "metrics.json").read_text())


def seconds_of_epochs(folder: Path) -> list[float]:
    start, ends = datetime(1900, 1, 1), []
    for path in sorted(folder.glob("metrics_epoch_*.json"), key=lambda path: path.stat().st_mtime):
        duration = json.loads(path.read_text())["training_duration"]
        ends.append((datetime.strptime(duration, "%H:%M:%S.%f") - start).total_seconds())
    return [end - before for before, end in zip([0.0, *ends], ends, strict=False)]


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
    for run in plan.runs(
        ["table 3"] if arguments.task != "ner" else ["figure 2"], [arguments.task]
    ):
        if run.variant == "input":
            theirs = with_embedder_of_allennlp(run.config, plan.variables["ELMO_TASKS_BILM"])
            for name, config in (("ours", run.config), ("AllenNLP's", theirs)):
                folder = run.folder / name[:4]
                metrics = train(config, folder)
                dev, test = (
                    100 * metrics.get(f"{key}_{metric}", 0) for key in ("best_validation", "test")
                )
                seconds = median(seconds_of_epochs(folder))
                print(
                    f"{run.name} {name:10} dev {dev:.2f} test {test:.2f} {seconds:.0f} s/epoch",
                    flush=True,
                )


if __name__ == "__main__":
    main()
