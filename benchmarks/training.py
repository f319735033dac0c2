"""
The time of an epoch with ELMo, with and without the layer cache, compared with the same model without ELMo:
`python benchmarks/training.py --task snli`. With the cache, the first epoch fills it and the others read it.

Uses the data in `ELMO_TASKS_DATA`, by default the included sample data, with validation and checkpoints.
"""

import argparse
import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

CONFIGS = Path(__file__).resolve().parent.parent / "training_configs"
# The suffix of the config of each run.
RUNS = {"without ELMo": "", "ELMo": "_elmo", "ELMo, cache": "_elmo"}


def epochs(config: str, folder: Path, n_epochs: int, overrides: dict[str, object], cache: Path | None) -> list[float]:
    """Seconds of each epoch."""
    environment = {name: value for name, value in os.environ.items() if name != "ELMO_TASKS_CACHE"}
    if cache is not None:
        environment["ELMO_TASKS_CACHE"] = str(cache)
    overrides = {"trainer.num_epochs": n_epochs, **overrides}
    command = [sys.executable, "-m", "allennlp", "train", str(CONFIGS / f"{config}.jsonnet"), "-s", str(folder)]
    subprocess.run([*command, "-o", json.dumps(overrides)], env=environment, capture_output=True, check=True)
    totals = []
    for epoch in range(n_epochs):
        metrics = json.loads((folder / f"metrics_epoch_{epoch}.json").read_text())
        moment = datetime.strptime(metrics["training_duration"], "%H:%M:%S.%f")
        totals.append(timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second).total_seconds())
        totals[-1] += moment.microsecond / 1e6
    return [total - before for total, before in zip(totals, [0.0, *totals], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--task", default="ner")
    parser.add_argument("--overrides", type=json.loads, default={}, help="JSON, as `allennlp train -o` takes it")
    arguments = parser.parse_args()
    seconds = {}
    with TemporaryDirectory() as folder:
        for number, (name, suffix) in enumerate(RUNS.items()):
            cache = Path(folder, "layers") if "cache" in name else None
            config = arguments.task + suffix
            seconds[name] = epochs(config, Path(folder, str(number)), arguments.epochs, arguments.overrides, cache)
            ratios = (own / base for own, base in zip(seconds[name], seconds["without ELMo"], strict=True))
            row = "   ".join(f"{own:6.1f} s ({ratio:.2f})" for own, ratio in zip(seconds[name], ratios, strict=True))
            print(f"{name:13} epochs 1 to {arguments.epochs} (ratio to without ELMo): {row}", flush=True)


if __name__ == "__main__":
    main()
