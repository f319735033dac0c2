"""One training."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.files.sealed_json import json_sha256

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """
    A training of a variant of a task with a seed, in a folder of its own: `config.json` is what is trained, `run` the
    serialization directory, `record.json` holds the identity, `log.txt` is what `allennlp train` wrote.

    # Parameters

    task, variant
        Their names.
    seed
        For all random numbers.
    size
        How much of the training set; `None` is all of it.
    results
        The folder of all runs.
    config
        The evaluated config.
    identity
        The part that distinguishes it from other runs: its config with the digests of the data, wherever these lie.
    about
        For a caption, with the keys `bilm`, `data`, `arguments` and `overrides`.
    """

    task: str
    variant: str
    seed: int
    size: int | None
    results: Path
    config: dict[str, Any]
    identity: dict[str, Any]
    about: dict[str, Any]

    @property
    def name(self) -> str:
        """For example `snli/both/1`, or with 1,000 pairs `snli/both-of-1000/1`."""
        part = "" if self.size is None else f"-of-{self.size}"
        return f"{self.task}/{self.variant}{part}/{self.seed}"

    @property
    def folder(self) -> Path:
        return self.results / self.name

    @property
    def serialization_dir(self) -> Path:
        return self.folder / "run"

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of the identity."""
        return json_sha256(self.identity)[:16]
