"""The training of a biLM without AllenNLP: the package's biLM and softmax, batches from packed text, checkpoints."""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lm_data import LmData, Text

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.gpu_check.part import SIZES

__all__ = ["Settings", "Training", "batches_of", "perplexities"]

_BUFFER_SENTENCES = 100_000


@dataclass(frozen=True)
class Settings:
    """
    All that the weights at the end of a training depend on but the text. The defaults are those of `bilm.jsonnet`.

    # Parameters

    size
        A key of `SIZES`.
    max_words
        Of the vocabulary of the softmax.
    n_samples
        Of the sampled softmax; 0: the softmax is trained in full.
    steps
        All steps of the training, over which the learning rate falls to 0.
    tokens
        Words of a batch, boundaries counted.
    lr, warmup, schedule
        The highest learning rate, the steps until it is reached, and how it falls: `linear` or `cosine`.
    grad_norm
        The largest norm of the gradients.
    dropout
        See `Bilm.contexts`.
    precision
        Of the products: `bf16` (automatic mixed precision), `tf32` or `float32`.
    seed
        Of weights, order and dropout.
    """

    size: str = "small"
    max_words: int = 180_000
    n_samples: int = 8192
    steps: int = 12_000
    tokens: int = 16_384
    lr: float = 0.002
    warmup: int = 500
    schedule: str = "linear"
    grad_norm: float = 10.0
    dropout: float = 0.1
    precision: str = "bf16"
    seed: int = 0

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        share = (step - self.warmup) / max(1, self.steps - self.warmup)
        return self.lr * (0.5 + 0.5 * math.cos(math.pi * share) if self.schedule == "cosine" else 1.0 - share)


def batches_of(lengths: np.ndarray, epoch: int, settings: Settings) -> Iterator[np.ndarray]:
    """
    The batches of an epoch, as the loader `elmo_lm` makes them: shuffled sentences of about the same length.

    # Parameters

    lengths
        Shape `(n_sentences,)`: words of each sentence.
    epoch
        Its number, on which the order depends.
    settings
        For its `tokens` and `seed`.

    # Returns

    `Iterator[np.ndarray]`
        The numbers of the sentences of each batch.
    """
    generator = np.random.default_rng([settings.seed, epoch])
    every = generator.permutation(len(lengths))
    for first in range(0, len(every), _BUFFER_SENTENCES):
        buffer = every[first : first + _BUFFER_SENTENCES]
        buffer = buffer[np.argsort(lengths[buffer], kind="stable")]
        n_before = np.concatenate([[0], np.cumsum(lengths[buffer] + 2)])
        batches = []
        start = 0
        while start < len(buffer):
            end = int(np.searchsorted(n_before, n_before[start] + settings.tokens, side="right")) - 1
            batches.append(buffer[start : max(end, start + 1)])
            start = max(end, start + 1)
        for index in generator.permutation(len(batches)):
            yield batches[index]


class _TextOnDevice:
    def __init__(self, text: Text, device: torch.device) -> None:
        self.lengths = text.lengths
        self._starts = np.cumsum(text.lengths) - text.lengths
        self._tokens = torch.from_numpy(text.tokens).to(device)

    def batch(self, data: LmData, sentences: np.ndarray) -> dict[str, torch.Tensor]:
        places = torch.from_numpy(np.stack([self._starts[sentences], self.lengths[sentences]]))
        if self._tokens.is_cuda:
            places = places.pin_memory()
        return data.batch(self._tokens, *places.to(self._tokens.device, non_blocking=True))


class Training:
    """
    A training, from its beginning or from its last checkpoint.

    # Parameters

    settings
        See `Settings`.
    data
        Words and vocabulary.
    text
        What to train on.
    device
        Where to train.
    """

    def __init__(self, settings: Settings, data: LmData, text: Text, device: torch.device) -> None:
        self.settings = settings
        self.device = device
        self._data = data
        self._text = _TextOnDevice(text, device)
        torch.manual_seed(settings.seed)
        precision = "tf32" if settings.precision == "tf32" else "float32"
        self.bilm = Bilm(SIZES[settings.size], precision=precision).to(device)
        n_words, dim = len(data.vocabulary), self.bilm.options.projection_dim
        is_sampled = 0 < settings.n_samples < n_words
        self.softmax = LmSoftmax(n_words, dim, n_samples=settings.n_samples if is_sampled else None).to(device)
        self._parameters = [*self.bilm.parameters(), *self.softmax.parameters()]
        self._optimizer = torch.optim.Adam(self._parameters, lr=settings.lr, fused=True)
        self.step, self.epoch, self._done = 0, 0, 0
        self._batches = self._from_here()
        self.loss = torch.zeros((), device=device)

    def _from_here(self) -> Iterator[np.ndarray]:
        while True:
            for index, batch in enumerate(batches_of(self._text.lengths, self.epoch, self.settings)):
                if index >= self._done:
                    # Before the batch is given: a checkpoint after its step is one after the batch.
                    self._done = index + 1
                    yield batch
            self.epoch, self._done = self.epoch + 1, 0

    def run_step(self) -> int:
        """One step of training; the number of predictions in each direction."""
        batch = self._text.batch(self._data, next(self._batches))
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16"):
            loss, n_predictions = self._loss(batch)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._parameters, self.settings.grad_norm)
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.rate(self.step)
        self._optimizer.step()
        self.step += 1
        # Without waiting for the GPU.
        self.loss = loss.detach()
        return n_predictions

    def _loss(self, batch: dict[str, torch.Tensor]) -> tuple[torch.Tensor, int]:
        contexts = self.bilm.contexts(batch["character_ids"], dropout=self.settings.dropout)
        boundaries = torch.tensor(self._data.boundaries, device=self.device)
        targets = torch.cat([batch["word_ids"], boundaries])[contexts.targets]
        loss = self.softmax(contexts.hidden.flatten(0, 1), targets.flatten()) / targets.numel()
        return loss, targets.size(1)

    def save(self, path: Path) -> None:
        """Writes a checkpoint, whole or not at all."""
        state: dict[str, Any] = {
            "settings": asdict(self.settings),
            "bilm": self.bilm.state_dict(),
            "softmax": self.softmax.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "progress": [self.step, self.epoch, self._done],
            "random": torch.get_rng_state(),
        }
        if self.device.type == "cuda":
            state["random of CUDA"] = torch.cuda.get_rng_state(self.device)
        with atomic_file(path) as temporary:
            torch.save(state, temporary)

    def load(self, path: Path) -> None:
        """
        Resumes from a checkpoint.

        # Raises

        `ValueError`
            If it has other settings.
        """
        state = torch.load(path, map_location="cpu", weights_only=True)
        now = asdict(self.settings)
        if others := [name for name, value in now.items() if state["settings"].get(name) != value]:
            name = others[0]
            raise ValueError(
                f"{path} was made with {name} {state['settings'].get(name)!r}, but now it is {now[name]!r}: give the "
                "same settings, or another folder"
            )
        self.bilm.load_state_dict(state["bilm"])
        self.softmax.load_state_dict(state["softmax"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.epoch, self._done = state["progress"]
        self._batches = self._from_here()
        torch.set_rng_state(state["random"])
        if "random of CUDA" in state and self.device.type == "cuda":
            torch.cuda.set_rng_state(state["random of CUDA"], self.device)

    def run(self, path: Path, *, minutes: float, checkpoint_minutes: float, every: int = 100) -> bool:
        """
        Trains until the last step, or until the time is up, with a checkpoint now and then and at the end.

        # Returns

        `bool`
            Whether the training is finished.
        """
        start = last_line = last_checkpoint = time.monotonic()
        n_since = 0
        while self.step < self.settings.steps and time.monotonic() < start + 60.0 * minutes:
            n_since += self.run_step()
            if self.step % every == 0 or self.step == self.settings.steps:
                loss = float(self.loss)
                if not math.isfinite(loss):
                    raise ValueError(
                        f"the loss of step {self.step} is {loss}: lower the learning rate, and begin again"
                    )
                now = time.monotonic()
                print(
                    f"step {self.step:,} of {self.settings.steps:,}, epoch {self.epoch}: loss {loss:.3f}, "
                    f"{n_since / (now - last_line):,.0f} tokens/s",
                    flush=True,
                )
                last_line, n_since = now, 0
            if time.monotonic() > last_checkpoint + 60.0 * checkpoint_minutes:
                self.save(path)
                last_checkpoint = time.monotonic()
        self.save(path)
        return self.step >= self.settings.steps


@torch.no_grad()
def perplexities(bilm: Bilm, softmax: LmSoftmax, data: LmData, text: Text, tokens: int = 8192) -> dict[str, float]:
    """
    As `allennlp elmo-perplexity` computes them, on the device of the biLM.

    # Returns

    `Dict[str, float]`
        `forward_perplexity`, `backward_perplexity`, their mean `perplexity`, and `unknown_share`.
    """
    device = next(bilm.parameters()).device
    on_device = _TextOnDevice(text, device)
    boundaries = torch.tensor(data.boundaries, device=device)
    sums = torch.zeros(2, dtype=torch.float64)
    n_predictions = n_unknown = 0
    unknown = data.vocabulary.index("<UNK>")
    for sentences in batches_of(text.lengths, 0, Settings(tokens=tokens)):
        batch = on_device.batch(data, sentences)
        contexts = bilm.contexts(batch["character_ids"])
        targets = torch.cat([batch["word_ids"], boundaries])[contexts.targets]
        for direction, pair in enumerate(zip(contexts.hidden, targets, strict=True)):
            sums[direction] -= float(softmax.log_likelihood(*pair).double().sum())
        n_predictions += targets.size(1)
        n_unknown += int((batch["word_ids"] == unknown).sum())
    forward, backward = (sums / n_predictions).exp().tolist()
    return {
        "forward_perplexity": forward,
        "backward_perplexity": backward,
        "perplexity": (forward + backward) / 2,
        "unknown_share": n_unknown / len(text.tokens),
    }
