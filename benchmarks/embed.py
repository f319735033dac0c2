"""
Time, memory and disk space of embedding a text: `python benchmarks/embed.py --text TEXT --tokens 1000000`.

Runs jobs of `python -m elmo_tasks embed`, each in its own process (`none`: only `Elmo.embed_iter`). Prints tokens/s,
tokens per second of CPU time (which other programs affect less), the size of the output, the largest disk space as a
multiple of it, and the peak memory of the largest process. If AllenNLP is installed, its `Elmo`, with batches of 64
sentences in text order, and ours then take turns on the first tokens of the text, so a busy machine slows both.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_tasks import Elmo
from elmo_tasks.embed import EmbedOptions, embed_file
from elmo_tasks.shipped import FIXTURES
from elmo_tasks.text.lines import numbered_lines
from elmo_tasks.vectors.pretrained import pretrained_files

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
    found = []
    for _, line in numbered_lines(text):
        if n_tokens <= 0:
            break
        found.append(line)
        n_tokens -= len(line.split())
    return found


def show_job(arguments: argparse.Namespace, name: str) -> None:
    """One job, in this process."""
    with TemporaryDirectory() as folder:
        text, work = Path(folder, "text.txt"), Path(folder, "work")
        lines = first_lines(arguments.text, arguments.tokens)
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        work.mkdir()
        n_tokens, sizes = sum(len(line.split()) for line in lines), [0]
        threading.Thread(target=watch, args=(work, sizes), daemon=True).start()
        options = EmbedOptions(arguments.bilm, device=arguments.device, precision=arguments.precision, **OUTPUTS[name])
        before, cpu_before = time.perf_counter(), time.process_time()
        if name == "none":
            elmo = Elmo.from_pretrained(arguments.bilm, device=arguments.device, precision=arguments.precision)
            for _ in elmo.embed_iter((line.split() for line in lines), progress=False):
                pass
        else:
            embed_file(text, f"{work}/{name}", options, workers=arguments.workers)
        seconds, n_bytes = time.perf_counter() - before, size(work)
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_seconds = sum(each.ru_utime + each.ru_stime for each in usage) - cpu_before
    # With workers, the largest of them or this one.
    peak = max(each.ru_maxrss for each in usage) / 1024
    print(
        f"{name:12} {n_tokens:10,} tokens {n_tokens / seconds:7,.0f} tokens/s {n_tokens / cpu_seconds:7,.0f} per CPU s "
        f"{n_bytes / n_tokens:8,.0f} bytes/token, {max(sizes) / max(n_bytes, 1):.2f} times {peak:8,.0f} MiB at most",
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


def compare(arguments: argparse.Namespace) -> None:
    """Compares AllenNLP's `Elmo` with ours, without writing a file."""
    try:
        from allennlp.modules.elmo import Elmo as TheirElmo
        from allennlp.modules.elmo import batch_to_ids
    except ImportError:
        print("AllenNLP is not installed: ours alone", file=sys.stderr)
        return
    import torch

    ours = Elmo.from_pretrained(arguments.bilm, device=arguments.device, precision=arguments.precision)
    device = next(ours.bilm.parameters()).device
    theirs = TheirElmo(*map(str, pretrained_files(arguments.bilm)), 1, dropout=0.0).eval().to(device)
    sentences = [line.split() for line in first_lines(arguments.text, arguments.compared) if line.split()]
    # Each round is a share of the text, so neither side sees a sentence twice.
    share = -(-len(sentences) // arguments.rounds)
    rows = []
    for start in range(0, len(sentences), share):
        part = sentences[start : start + share]
        times = []
        for run in (
            lambda part: run_theirs(theirs, batch_to_ids, part, device),
            lambda part: ours.embed(part, progress=False),
        ):
            with torch.no_grad():
                if start == 0:
                    run(part[:64])  # Warms up.
                before = time.perf_counter()
                run(part)
            times.append(time.perf_counter() - before)
        rows.append((sum(map(len, part)), *times))
    ratios = [their_time / our_time for _, their_time, our_time in rows]
    n_tokens = sum(row[0] for row in rows)
    print(
        f"AllenNLP {n_tokens / sum(row[1] for row in rows):,.0f}, ours {n_tokens / sum(row[2] for row in rows):,.0f} "
        f"tokens/s on the first {n_tokens:,} tokens; ratio {statistics.median(ratios):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} rounds)"
    )


def run_theirs(elmo, batch_to_ids, sentences, device) -> list:
    found = []
    iterator = iter(sentences)
    while batch := list(islice(iterator, 64)):
        (vectors,) = elmo(batch_to_ids(batch).to(device))["elmo_representations"]
        found += [array[: len(words)].cpu().numpy() for array, words in zip(vectors, batch, strict=True)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=FIXTURES / "lm" / "train.txt")
    parser.add_argument("--tokens", type=int, default=1_000_000, help="of the jobs")
    parser.add_argument("--compared", type=int, default=50_000, help="tokens for the comparison with AllenNLP")
    parser.add_argument("--rounds", type=int, default=5, help="of the comparison")
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
    compare(arguments)


if __name__ == "__main__":
    main()
