"""The tiny biLM in fixtures/, and batches for it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.modules import ContextualBilm
from tests.paths import TINY_BILM


@pytest.fixture(scope="session")
def tiny_options() -> dict[str, Any]:
    return json.loads((TINY_BILM / "options.json").read_text())


@pytest.fixture(scope="session")
def tiny_weights() -> str:
    return str(TINY_BILM / "weights.hdf5")


@pytest.fixture
def pretrained(tiny_options: dict[str, Any], tiny_weights: str) -> Callable[..., ContextualBilm]:
    """Makes a new tiny biLM."""

    def make(**kwargs: Any) -> ContextualBilm:
        return ContextualBilm(
            **{"options": tiny_options, "pretrained_file": tiny_weights, **kwargs}
        )

    return make


@pytest.fixture
def batch() -> torch.Tensor:
    """Character ids of three sentences of different lengths."""
    return BYTES.batch([["The", "cat", "sat", "."], ["Hello"], ["Encyclopædia", "😀", "cat"]])


@pytest.fixture
def count_passes() -> Callable[[ContextualBilm], list[torch.Tensor]]:
    """A function that returns a list to which each run of a biLM appends its input."""

    def count(pretrained: ContextualBilm) -> list[torch.Tensor]:
        seen: list[torch.Tensor] = []
        pretrained.bilm.register_forward_pre_hook(lambda module, args: seen.append(args[0].clone()))
        return seen

    return count
