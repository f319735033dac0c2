"""
The perplexity of a text: `python benchmarks/perplexity.py --text TEXT --before CHECKOUT`.

Words/s of `LanguageModel.score`, as `allennlp elmo-perplexity` calls it, and the share of the fastest matrix product
that the products of the LSTMs and of the softmax have. With `--before`, another checkout of this project scores the
same sentences by turns, in a process of its own.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def score(arguments: argparse.Namespace) -> None:
    """One side: scores the sentences for each line on stdin."""
    import torch

    from elmo_tasks.analysis import LanguageModel, summary

    torch.set_num_threads(arguments.threads)
    model = LanguageModel(arguments.bilm)
    with open(arguments.text, encoding="utf-8") as file:
        sentences = [line.split() for line in islice(file, arguments.sentences)]
    options, n_words = model._bilm.options, model._softmax.n_words
    weights = options.n_layers * (2 * options.projection_dim * 4 + options.projection_dim) * options.cell_dim
    # Both directions; a sentence has two words more for the LSTMs, and one prediction more.
    operations = 2 * 2 * sum((len(each) + 2) * weights for each in sentences)
    operations += 2 * 2 * sum((len(each) + 1) * n_words * options.projection_dim for each in sentences)
    matrix = torch.randn(1024, 1024)
    list(model.score(sentences[:20]))
    print("ready", flush=True)
    for _ in sys.stdin:
        product = min(timed(lambda: matrix @ matrix) for _ in range(10))
        start = time.perf_counter()
        found = summary(model.score(sentences))
        seconds = time.perf_counter() - start
        share = operations / seconds / (2 * 1024**3 / product)
        print(seconds, found["words"], share, found["perplexity"], flush=True)


def timed(run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def side(checkout: Path) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, __file__, *sys.argv[1:], "--side"],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    process.stdout.readline()
    return process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, help="tokenised, a sentence a line")
    parser.add_argument("--bilm", default=str(ROOT / "elmo_tasks" / "pretrained" / "small-open"), help="its folder")
    parser.add_argument("--sentences", type=int, help="how many; default: all")
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        score(arguments)
        return
    sides = [side(checkout) for checkout in (ROOT, arguments.before) if checkout]
    ratios = []
    for _ in range(arguments.rounds):
        found = []
        for process in sides:
            process.stdin.write("\n")
            found.append([float(number) for number in process.stdout.readline().split()])
        seconds, words, share, perplexity = found[0]
        print(f"{words / seconds:,.0f} words/s, {share:.0%} of the peak, perplexity {perplexity:.4f}", end="")
        if arguments.before:
            ratios.append(found[1][0] / seconds)
            print(f"; before {words / found[1][0]:,.0f}, perplexity {found[1][3]:.4f}", end="")
        print(flush=True)
    if ratios:
        print(f"{statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
