"""
The time to start `allennlp`, next to the time to import torch: `python benchmarks/startup.py`.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = {
    "python -c 'import torch'": [sys.executable, "-c", "import torch"],
    "allennlp --help": [str(Path(sys.executable).with_name("allennlp")), "--help"],
}


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    # In turns, so a busy machine slows both; the first round fills the system's caches.
    rounds = [
        [seconds(command) for command in COMMANDS.values()] for _ in range(arguments.rounds + 1)
    ][1:]
    for name, times in zip(COMMANDS, zip(*rounds, strict=True), strict=True):
        print(f"{name:30} {statistics.median(times):5.1f} s ({min(times):.1f} to {max(times):.1f})")


if __name__ == "__main__":
    main()
