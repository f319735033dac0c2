"""Fixtures for the tests of the vectors."""

from pathlib import Path

import pytest

from elmo_tasks.bilm import Bilm
from tests.bilm.conftest import random_bilm, save


@pytest.fixture(scope="module")
def bilm() -> Bilm:
    """A small biLM with random weights."""
    return random_bilm()


@pytest.fixture
def files(bilm: Bilm, tmp_path: Path) -> tuple[str, str]:
    """The options and the weights of `bilm`."""
    return save(bilm, tmp_path)
