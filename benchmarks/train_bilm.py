"""
The speed of a biLM's training, without AllenNLP:
`python benchmarks/train_bilm.py TEXT --profile 2`.

`TEXT` has one sentence per line, with spaces between words. The steps come from
`training_configs/bilm.jsonnet`. Prints words per second of CPU time, the share of the speed of a
plain matrix product, the largest memory of the process, and the five operations that take the most
time.
"""

import argparse
import resource
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain, cycle
from pathlib import Path

import numpy as np
import torch
from bilm import SIZES

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.character_ids import BYTES, NumberedWords
from elmo_tasks.bilm.process import keep_freed_memory
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.files.lines import numbered_lines

Batch = tuple[NumberedWords, torch.Tensor]


def batches_of(
    sentences: list[list[str]], vocabulary: WordList, arguments: argparse.Namespace
) -> Iterator[Batch]:
    """
    Shuffled batches of sentences of about the same length: their words, and the vocabulary numbers
    of the words that `BilmContexts.targets` refers to.
    """
    sentences = sorted(sentences, key=len)
    # The number of the batch of each sentence.
    batch_numbers = np.cumsum([len(words) + 2 for words in sentences]) // arguments.tokens
    shuffled = np.random.default_rng(0).permutation(batch_numbers[-1] + 1)
    for batch_number in shuffled[: arguments.profile + 3]:
        start = np.searchsorted(batch_numbers, batch_number)
        end = np.searchsorted(batch_numbers, batch_number, side="right")
        batch = sentences[start:end]
        numbers = vocabulary.indices([*chain.from_iterable(batch), "<S>", "</S>"])
        yield BYTES.numbered(batch), torch.tensor(numbers, device=arguments.device)


class Training:
    def __init__(self, n_words: int, arguments: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.is_bf16 = arguments.precision == "bf16"
        self.bilm = Bilm(SIZES[arguments.size]).to(arguments.device)
        projection_dim = self.bilm.options.projection_dim
        n_samples = 8192 if n_words > 8192 else None
        self.softmax = LmSoftmax(n_words, projection_dim, n_samples=n_samples)
        self.softmax.to(arguments.device)
        self.parameters = [*self.bilm.parameters(), *self.softmax.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, fused=True)

    def run_step(self, words: NumberedWords, numbers: torch.Tensor) -> int:
        """Takes one step; returns the number of words."""
        with torch.autocast(numbers.device.type, torch.bfloat16, enabled=self.is_bf16):
            contexts = self.bilm.contexts(words, dropout=0.1)
            targets = numbers[contexts.targets]
            total = self.softmax(contexts.hidden.flatten(0, 1), targets.flatten())
            loss = total / targets.numel()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 10.0)
        self.optimizer.step()
        return len(numbers) - 2


def print_profile(
    training: Training, batches: Iterator[Batch], arguments: argparse.Namespace
) -> None:
    """Measures steps after two others, in which libraries and memory get ready."""
    for _ in range(2):
        training.run_step(*next(batches))
    n_words = 0
    start = time.perf_counter()
    cpu_start = time.process_time()
    for _ in range(arguments.profile):
        n_words += training.run_step(*next(batches))
    seconds = time.perf_counter() - start
    cpu_seconds = time.process_time() - cpu_start
    print(f"{n_words / seconds:,.0f} words/s, {n_words / cpu_seconds:,.0f} per second of CPU time")
    if arguments.device == "cpu":
        operations_per_second = n_words * operations_per_word(training) / cpu_seconds
        share = operations_per_second / product_speed(arguments.precision)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{share:.0%} of the speed of a product, without the character encoder; "
            f"{memory:.1f} GB of memory"
        )
    with torch.profiler.profile() as profile:
        training.run_step(*next(batches))
    print_operations(profile)


def operations_per_word(training: Training) -> int:
    """
    Multiplications and additions, twice for the gradient: LSTMs, and the softmax of both
    directions.
    """
    options = training.bilm.options
    n_columns = training.softmax.n_samples or training.softmax.n_words
    in_lstms = 2 * options.n_layers * options.cell_dim * 9 * options.projection_dim
    in_softmax = 2 * n_columns * options.projection_dim
    return 6 * (in_lstms + in_softmax)


def print_operations(profile: torch.profiler.profile) -> None:
    """The five that take the most time."""
    events = sorted(profile.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    for event in events[:5]:
        print(f"{event.self_cpu_time_total / total:6.1%}  {event.key}")


def product_speed(precision: str) -> float:
    """
    Floating-point operations per second of CPU time in a product of two matrices of 1024 x 1024.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    matrix = torch.randn(1024, 1024, dtype=dtype)
    matrix @ matrix
    start = time.process_time()
    for _ in range(4):
        matrix @ matrix
    return 4 * 2 * 1024**3 / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument(
        "--tokens", type=int, default=16_384, help="words of a batch, boundaries counted"
    )
    parser.add_argument(
        "--max-words", type=int, default=180_000, help="of the vocabulary of the softmax"
    )
    parser.add_argument("--precision", choices=["bf16", "float32"], default="bf16")
    parser.add_argument(
        "--profile", type=int, default=2, metavar="STEPS", help="how many steps to measure"
    )
    arguments = parser.parse_args()
    keep_freed_memory()
    sentences = [line.split() for _, line in numbered_lines(arguments.text) if line.strip()]
    counts = Counter(chain.from_iterable(sentences))
    vocabulary = WordList.from_counts(counts, max_words=arguments.max_words)
    batches = cycle(list(batches_of(sentences, vocabulary, arguments)))
    print_profile(Training(len(vocabulary), arguments), batches, arguments)


if __name__ == "__main__":
    main()
