"""Digests of what the code computes for each task: a run of code that computed something else has another."""

from pathlib import Path

from elmo_tasks.files.sealed_json import json_sha256, read_sealed
from elmo_tasks.replication.plan.variant import Variant
from elmo_tasks.shipped import FIXTURES

__all__ = ["COMPUTATION", "FORMAT", "computation_digest", "kind_of", "known_losses"]

COMPUTATION = FIXTURES / "computation.json"
"""The losses of a few training steps of each task, without and with ELMo, on the data and with the biLM that ship."""

FORMAT = 1


def kind_of(variant: Variant) -> str:
    """Which losses stand for a variant: `"baseline"`, or `"elmo"` for all variants with a biLM."""
    return "baseline" if variant == Variant.baseline() else "elmo"


def known_losses(path: Path = COMPUTATION) -> dict[str, dict[str, list[float]]]:
    """
    The losses by task and kind, as they were written.

    # Raises

    `ValueError`, `FileNotFoundError`
        If the file is not there, damaged, or of another format.
    """
    content = read_sealed(path)
    if content.get("format") != FORMAT:
        raise ValueError(f'{path} must have "format": {FORMAT}, but has {content.get("format")!r:.20}')
    losses: dict[str, dict[str, list[float]]] = content["losses"]
    return losses


def computation_digest(task: str, variant: Variant) -> str:
    """
    A part of the identity of a run that costs nothing to read: a test holds that the code still computes these losses.

    # Returns

    `str`
        16 hexadecimal digits.

    # Raises

    `ValueError`, `FileNotFoundError`
        See `known_losses`.
    """
    return json_sha256(known_losses()[task][kind_of(variant)])[:16]
