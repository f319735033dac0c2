"""
The time to start a command, and the time from the start of a training to its first batch:
`ELMO_TASKS_DATA=DATA python benchmarks/startup.py [--tasks snli squad]`.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS = {
    "python -c 'import torch'": [sys.executable, "-c", "import torch"],
    "allennlp --help": [str(Path(sys.executable).with_name("allennlp")), "--help"],
}
CONFIGS = Path(__file__).resolve().parent.parent / "training_configs"


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def make_first_batch(task: str) -> None:
    """Everything that `allennlp train` does before its first step."""
    from allennlp.commands.train import TrainModel
    from allennlp.common import Params
    from allennlp.common.plugins import import_plugins

    import_plugins()
    config = Params.from_file(CONFIGS / f"{task}.jsonnet").as_dict(quiet=True)
    with tempfile.TemporaryDirectory() as folder:
        training = TrainModel.from_params(Params(config), serialization_dir=folder, local_rank=0)
        next(iter(training.trainer.data_loader))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="*", default=[], help="tasks whose first batch is made")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--first-batch", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.first_batch:
        make_first_batch(arguments.first_batch)
        return
    runs = {**COMMANDS, **{task: [sys.executable, __file__, "--first-batch", task] for task in arguments.tasks}}
    # In turns, so a busy machine slows all of them; the first round fills the system's caches.
    rounds = [[seconds(command) for command in runs.values()] for _ in range(arguments.rounds + 1)][1:]
    for name, times in zip(runs, zip(*rounds, strict=True), strict=True):
        print(f"{name:30} {statistics.median(times):5.1f} s ({min(times):.1f} to {max(times):.1f})")


if __name__ == "__main__":
    main()
