"""
Time, memory and disk space of embedding a text:
`python benchmarks/embed.py --text TEXT --tokens 1000000`.

Runs jobs of `python -m elmo_tasks embed`, each in its own process (`none`: only `Elmo.embed_iter`).
Prints tokens/s, tokens per second of CPU time (which other programs affect less), the size of the
output, the largest disk space as a multiple of it, and the peak memory of the largest process.
"""

import argparse
import os
import resource
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_tasks import Elmo
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.files.lines import numbered_lines
from elmo_tasks.files.shipped import FIXTURES

OUTPUTS = {
    "none": {},
    "out.h5": {},
    "out.parquet": {},
    "out/": {},
    "half.h5": {"dtype": "float16"},
    "pooled.h5": {"pool": "mean"},
}


def first_lines(text: Path, n_tokens: int) -> list[str]:
    """Lines of a text with about `n_tokens` words."""
    lines = []
    for _, line in numbered_lines(text):
        if n_tokens <= 0:
            break
        lines.append(line)
        n_tokens -= len(line.split())
    return lines


def show_job(arguments: argparse.Namespace, name: str) -> None:
    """One job, in this process."""
    lines = first_lines(arguments.text, arguments.tokens)
    n_tokens = sum(len(line.split()) for line in lines)
    with TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        work = Path(folder, "work")
        work.mkdir()
        sizes = [0]
        threading.Thread(target=watch, args=(work, sizes), daemon=True).start()
        options = EmbedOptions(
            arguments.bilm, device=arguments.device, precision=arguments.precision, **OUTPUTS[name]
        )
        start = time.perf_counter()
        cpu_start = time.process_time()
        if name == "none":
            elmo = Elmo.from_pretrained(
                arguments.bilm, device=arguments.device, precision=arguments.precision
            )
            sentences = (line.split() for line in lines)
            for _ in elmo.embed_iter(sentences, progress=False):
                pass
        else:
            embed_file(text, f"{work}/{name}", options, workers=arguments.workers)
        seconds = time.perf_counter() - start
        n_bytes = size(work)
    own = resource.getrusage(resource.RUSAGE_SELF)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_end = own.ru_utime + own.ru_stime + workers.ru_utime + workers.ru_stime
    cpu_seconds = cpu_end - cpu_start
    # With workers, the largest of them or this one.
    peak = max(own.ru_maxrss, workers.ru_maxrss) / 1024
    speed = f"{n_tokens / seconds:7,.0f} tokens/s {n_tokens / cpu_seconds:7,.0f} per CPU s"
    print(
        f"{name:12} {n_tokens:10,} tokens {speed} "
        f"{n_bytes / n_tokens:8,.0f} bytes/token, {max(sizes) / max(n_bytes, 1):.2f} times "
        f"{peak:8,.0f} MiB at most",
        flush=True,
    )


def size(folder: Path) -> int:
    return sum(os.stat(file).st_size for file in folder.rglob("*") if os.path.isfile(file))


def watch(folder: Path, sizes: list[int]) -> None:
    """Notes the size of a folder four times a second."""
    while folder.exists():
        with suppress(FileNotFoundError):
            sizes.append(size(folder))
        time.sleep(0.25)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", type=Path, default=FIXTURES / "lm" / "train.txt")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of the text")
    parser.add_argument("--bilm", default="small-open")
    parser.add_argument("--device")
    parser.add_argument("--precision")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--outputs", nargs="*", choices=OUTPUTS, default=list(OUTPUTS))
    parser.add_argument("--job", choices=OUTPUTS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        show_job(arguments, arguments.job)
        return
    for name in arguments.outputs:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--job", name], check=True)


if __name__ == "__main__":
    main()
