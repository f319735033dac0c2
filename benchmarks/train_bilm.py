"""
Trains a biLM without AllenNLP, in parts: `python benchmarks/gpu/train_bilm.py TEXT RUN --minutes 8 --export BILM`.

`TEXT` has one sentence per line, with spaces between words. The same command resumes from the checkpoint in `RUN`, and
exits with status 3 while steps are left. At the end, `--export` writes the biLM and its softmax in the public format;
`allennlp elmo-perplexity BILM TEXT` measures its quality. Optimizer and sizes: see `training_configs/bilm.jsonnet`.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.bilm.characters import word_to_character_ids
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
        sentences = [words for _, line in numbered_lines(path) if (words := line.split())]
        counts = Counter(word for sentence in sentences for word in sentence)
        self.vocabulary = WordList.from_counts(counts, max_words=max_words)
        numbers = {word: number for number, word in enumerate(counts)}
        self.sentences = [torch.tensor([numbers[word] for word in sentence]) for sentence in sentences]
        self.lengths = np.array([len(sentence) for sentence in sentences])
        # Shape: (n_distinct + 1, 50) and (n_distinct,); the last row is for padding.
        rows = [*(word_to_character_ids(word) for word in counts), np.zeros(50, np.int64)]
        self._character_ids = torch.tensor(np.stack(rows), device=device)
        self._targets = torch.tensor(self.vocabulary.indices(counts), device=device)
        self._boundaries = torch.tensor(self.vocabulary.indices(["<S>", "</S>"]), device=device)

    def batch(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        """Character ids of sentences, and the vocabulary numbers of the words that `BilmContexts.targets` refers to."""
        words = [self.sentences[row] for row in rows]
        padded = torch.nn.utils.rnn.pad_sequence(words, batch_first=True, padding_value=-1)
        flat = torch.cat(words).to(self._targets.device)
        ids = self._character_ids[padded.to(self._targets.device)]
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
        self.optimizer = torch.optim.Adam(self.parameters, fused=arguments.device != "cpu")
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("run", type=Path, help="folder of the checkpoint")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--tokens", type=int, default=16_384, help="words of a batch, boundaries counted")
    parser.add_argument("--max-words", type=int, default=180_000, help="of the vocabulary of the softmax")
    parser.add_argument("--precision", choices=["bf16", "float32"], default="bf16")
    parser.add_argument("--minutes", type=float, default=8.0, help="of training in this call")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="where to write the biLM once it is finished")
    arguments = parser.parse_args()
    text = Text(arguments.text, arguments.max_words, torch.device(arguments.device))
    training = Training(text, arguments)
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
