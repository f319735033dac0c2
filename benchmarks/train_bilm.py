"""
Trains a biLM without AllenNLP, in parts: `python benchmarks/train_bilm.py TEXT RUN --minutes 8 --export BILM`.

`TEXT` has one sentence per line, with spaces between words. The same command resumes from the checkpoint in `RUN`, and
exits with status 3 while steps are left. At the end, `--export` writes the biLM and its softmax in the public format;
`allennlp elmo-perplexity BILM TEXT` measures its quality. Optimizer and sizes: see `training_configs/bilm.jsonnet`.

With `--profile 2`, it measures two steps instead: words per second of CPU time, the share of the speed of a plain
matrix product, the largest memory of the process, and the five operations that take the most time.
"""

import argparse
import resource
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.characters import word_to_character_ids
from elmo_tasks.bilm.kernels.freed_memory import keep_freed_memory
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.text.lines import numbered_lines

PAPER = BilmOptions()
SIZES = {
    # For a trial run of the script.
    "tiny": replace(PAPER, cell_dim=16, projection_dim=8, filters=PAPER.filters[:3], n_highway=1),
    "small": replace(PAPER, cell_dim=1024, projection_dim=128, filters=PAPER.filters[:-1], n_highway=1),
    "original": PAPER,
}


class Text:
    """The sentences of a file, each as a tensor of word numbers, and the arrays of the distinct words on a device."""

    def __init__(self, path: Path, max_words: int, device: torch.device) -> None:
        counts = Counter(word for _, line in numbered_lines(path) for word in line.split())
        self.vocabulary = WordList.from_counts(counts, max_words=max_words)
        numbers = {word: number for number, word in enumerate(counts)}
        # Four bytes per word: the words of all sentences in a row.
        words = array("i")
        lengths = array("i")
        for _, line in numbered_lines(path):
            before = len(words)
            words.extend(numbers[word] for word in line.split())
            lengths.append(len(words) - before)
        self.lengths = np.array([length for length in lengths if length])
        self.sentences = torch.split(torch.from_numpy(np.array(words)), self.lengths.tolist())
        # Shape: (n_distinct + 1, 50) and (n_distinct,); the last row is for padding.
        rows = np.zeros((len(counts) + 1, 50), np.int16)
        for number, word in enumerate(counts):
            rows[number] = word_to_character_ids(word)
        self._character_ids = torch.from_numpy(rows).to(device)
        self._targets = torch.tensor(self.vocabulary.indices(counts), device=device)
        self._boundaries = torch.tensor(self.vocabulary.indices(["<S>", "</S>"]), device=device)

    def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Character ids of sentences, and the vocabulary numbers of the words that `BilmContexts.targets` refers to."""
        words = [self.sentences[row].long() for row in rows]
        padded = torch.nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=-1)
        flat = torch.cat(words).to(self._targets.device)
        ids = self._character_ids[padded.to(self._targets.device)].long()
        return ids, torch.cat([self._targets[flat], self._boundaries])

    def batches(self, epoch: int, tokens: int) -> Iterator[np.ndarray]:
        """Shuffled batches of sentences of about the same length."""
        generator = np.random.default_rng(epoch)
        rows = generator.permutation(len(self.lengths))
        rows = rows[np.argsort(self.lengths[rows], kind="stable")]
        parts = np.cumsum(self.lengths[rows] + 2) // tokens
        found = np.split(rows, np.flatnonzero(np.diff(parts)) + 1)
        return (found[index] for index in generator.permutation(len(found)))


class Training:
    def __init__(self, text: Text, arguments: argparse.Namespace) -> None:
        torch.manual_seed(0)
        self.text, self.arguments = text, arguments
        self.bilm = Bilm(SIZES[arguments.size]).to(arguments.device)
        n_words = len(text.vocabulary)
        n_samples = 8192 if n_words > 8192 else None
        self.softmax = LmSoftmax(n_words, self.bilm.options.projection_dim, n_samples=n_samples).to(arguments.device)
        self.parameters = [*self.bilm.parameters(), *self.softmax.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, fused=True)
        self.step = self.epoch = 0

    def state(self) -> dict[str, object]:
        parts = {"bilm": self.bilm, "softmax": self.softmax, "optimizer": self.optimizer}
        progress = {"step": self.step, "epoch": self.epoch}
        return {**{name: part.state_dict() for name, part in parts.items()}, **progress}

    def load(self, state: dict) -> None:
        for name in ("bilm", "softmax", "optimizer"):
            getattr(self, name).load_state_dict(state[name])
        self.step, self.epoch = state["step"], state["epoch"]

    def run_step(self, rows: np.ndarray) -> tuple[torch.Tensor, int]:
        """Takes one step; returns the loss, in nats per prediction, and the number of words."""
        ids, numbers = self.text.batch(rows)
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=self.arguments.precision == "bf16"):
            contexts = self.bilm.contexts(ids, dropout=0.1)
            targets = numbers[contexts.targets]
            loss = self.softmax(contexts.hidden.flatten(0, 1), targets.flatten()) / targets.numel()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 10.0)
        # Warm-up, then a linear decay to zero.
        rate = min((self.step + 1) / 500, (self.arguments.steps - self.step) / max(1, self.arguments.steps - 500))
        self.optimizer.param_groups[0]["lr"] = 0.002 * rate
        self.optimizer.step()
        self.step += 1
        return loss.detach(), len(numbers) - 2

    def run(self, checkpoint: Path) -> bool:
        """Trains until the last step or timeout; returns whether it finished. A resumed run starts the next epoch."""
        start, n_words, began = time.monotonic(), 0, self.step
        while self.step < self.arguments.steps and time.monotonic() < start + 60 * self.arguments.minutes:
            for rows in self.text.batches(self.epoch, self.arguments.tokens):
                loss, n_new = self.run_step(rows)
                n_words += n_new
                if self.step % 100 == 0 or self.step == self.arguments.steps:
                    speed = n_words / (time.monotonic() - start)
                    print(f"step {self.step:,}, epoch {self.epoch}: loss {loss:.3f}, {speed:,.0f} words/s", flush=True)
                if self.step >= self.arguments.steps or time.monotonic() >= start + 60 * self.arguments.minutes:
                    break
            self.epoch += 1
        if self.step > began:
            with atomic_file(checkpoint) as temporary:
                torch.save(self.state(), temporary)
        return self.step >= self.arguments.steps


def print_profile(training: Training, tokens: int, n_steps: int) -> None:
    """Measures steps after two others, in which libraries and memory get ready."""
    batches = training.text.batches(0, tokens)
    for _ in range(2):
        training.run_step(next(batches))
    start, cpu_start = time.perf_counter(), time.process_time()
    n_words = sum(training.run_step(next(batches))[1] for _ in range(n_steps))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    options = training.bilm.options
    # Multiplications and additions, twice for the gradient: LSTMs, and the softmax of both directions.
    of_lstms = 2 * options.n_layers * options.cell_dim * 9 * options.projection_dim
    n_columns = training.softmax.n_samples or training.softmax.n_words
    per_word = 6 * (of_lstms + 2 * n_columns * options.projection_dim)
    print(f"{n_words / seconds:,.0f} words/s, {n_words / cpu_seconds:,.0f} per second of CPU time")
    if training.arguments.device == "cpu":
        share = n_words * per_word / cpu_seconds / product_speed(training.arguments.precision)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{share:.0%} of the speed of a product, without the character encoder; {memory:.1f} GB of memory")
    with torch.profiler.profile() as profile:
        training.run_step(next(batches))
    events = sorted(profile.key_averages(), key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    for event in events[:5]:
        print(f"{event.self_cpu_time_total / total:6.1%}  {event.key}")


def product_speed(precision: str) -> float:
    """Floating-point operations per second of CPU time in a product of two matrices of 1024 x 1024."""
    matrix = torch.randn(1024, 1024, dtype=torch.bfloat16 if precision == "bf16" else torch.float32)
    matrix @ matrix
    start = time.process_time()
    for _ in range(4):
        matrix @ matrix
    return 4 * 2 * 1024**3 / (time.process_time() - start)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("run", type=Path, nargs="?", default=Path("bilm_run"), help="folder of the checkpoint")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--tokens", type=int, default=16_384, help="words of a batch, boundaries counted")
    parser.add_argument("--max-words", type=int, default=180_000, help="of the vocabulary of the softmax")
    parser.add_argument("--precision", choices=["bf16", "float32"], default="bf16")
    parser.add_argument("--minutes", type=float, default=8.0, help="of training in this call")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="where to write the biLM once it is finished")
    parser.add_argument("--profile", type=int, default=0, metavar="STEPS", help="measure this many steps instead")
    arguments = parser.parse_args()
    keep_freed_memory()
    text = Text(arguments.text, arguments.max_words, torch.device(arguments.device))
    training = Training(text, arguments)
    if arguments.profile:
        print_profile(training, arguments.tokens, arguments.profile)
        return 0
    checkpoint = arguments.run / "checkpoint.pt"
    arguments.run.mkdir(parents=True, exist_ok=True)
    if checkpoint.exists():
        training.load(torch.load(checkpoint, weights_only=True))
    if not training.run(checkpoint):
        print("not finished: run the same command again")
        return 3
    if arguments.export is not None:
        arguments.export.mkdir(parents=True, exist_ok=True)
        files = (arguments.export / name for name in ("options.json", "weights.hdf5"))
        softmax = training.softmax.state_dict()
        training.bilm.save(*files, softmax=softmax, dtype=torch.float16)
        text.vocabulary.save(arguments.export / "vocab.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
