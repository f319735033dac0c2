"""Time from a command to its first line: `python benchmarks/startup.py`."""

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
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    # By turns, so that a busy machine slows both; the first round fills the caches of the file system.
    rounds = [[seconds(command) for command in COMMANDS.values()] for _ in range(6)][1:]
    for name, times in zip(COMMANDS, zip(*rounds, strict=True), strict=True):
        print(f"{name:26} {statistics.median(times):5.1f} s ({min(times):.1f} to {max(times):.1f})")


if __name__ == "__main__":
    main()
