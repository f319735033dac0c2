"""
An embed job that is killed again and again, and its file in the end: `python benchmarks/embed_kills.py`.

Each run is a process of its own that gets SIGKILL at a random moment while it works; the next one resumes with
--resume. The finished file must be that of an undisturbed run, byte for byte.
"""

import argparse
import hashlib
import os
import random
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_tasks import Elmo
from elmo_tasks.embed_job import EmbedOptions, embed_file
from elmo_tasks.shipped import FIXTURES


def start(text: Path, output: Path, options: EmbedOptions) -> int:
    """The process of a run, forked so that torch is imported once for all of them."""
    process = os.fork()
    if process == 0:
        embed_file(text, output, options, resume=True, show_progress=False)
        os._exit(0)
    return process


def kill_while_it_works(process: int, folder: Path) -> bool:
    """Waits for some more parts and a moment beyond; `False` if the run was finished before."""
    wanted = len(list(folder.glob("part-*"))) + random.randint(0, 3)
    while len(list(folder.glob("part-*"))) < wanted or not folder.exists():
        if os.waitpid(process, os.WNOHANG)[0]:
            return False
        time.sleep(0.001)
    time.sleep(random.uniform(0.0, 0.1))
    if os.waitpid(process, os.WNOHANG)[0]:
        return False
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--bilm", default="small-open")
    parser.add_argument("--text", type=Path, default=FIXTURES / "lm" / "train.txt")
    parser.add_argument("--lines", type=int, default=700)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    options = EmbedOptions(bilm=arguments.bilm, part_lines=5)
    # Imports torch before the first fork.
    Elmo.from_pretrained(arguments.bilm)
    with TemporaryDirectory() as name:
        folder = Path(name)
        text, killed, whole = folder / "text.txt", folder / "killed.h5", folder / "whole.h5"
        lines = arguments.text.read_text(encoding="utf-8").splitlines(keepends=True)[: arguments.lines]
        text.write_text("".join(lines), encoding="utf-8")
        kills = done_at_kills = 0
        while kills < arguments.kills:
            if not kill_while_it_works(start(text, killed, options), folder / "killed.h5.parts"):
                sys.exit(f"the job was finished after {kills} kills: give it more --lines")
            kills += 1
            done_at_kills = len(list((folder / "killed.h5.parts").glob("part-*")))
        report = embed_file(text, killed, options, resume=True, show_progress=False)
        embed_file(text, whole, options, show_progress=False)
        digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (killed, whole)]
        n_words = sum(len(line.split()) for line in lines)
        print(
            f"{kills} kills, {done_at_kills} parts done at the last; {len(lines)} lines, {n_words:,} tokens, ", end=""
        )
        print(f"the last run computed {report.n_tokens:,} tokens")
        print("the files are the same, byte for byte" if digests[0] == digests[1] else "THE FILES DIFFER")
        sys.exit(digests[0] != digests[1])


if __name__ == "__main__":
    main()
