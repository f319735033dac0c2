"""Archives of all tasks, with random weights."""

from pathlib import Path

import pytest

from elmo_tasks.demo.task_archive import TaskArchive
from tests.demo.archives import write_archive


@pytest.fixture(scope="session")
def ner_archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A baseline and a model with ELMo at both places."""
    folder = tmp_path_factory.mktemp("ner")
    return [write_archive(folder / "ner", "ner"), write_archive(folder / "ner_elmo", "ner", "both", seed=1)]


@pytest.fixture(scope="session")
def snli_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of entailment, without ELMo."""
    return write_archive(tmp_path_factory.mktemp("snli") / "snli", "snli")


@pytest.fixture(scope="session")
def loaded(ner_archives: list[Path], snli_archive: Path) -> list[TaskArchive]:
    """Those of the two fixtures above."""
    return [TaskArchive.load(path) for path in (*ner_archives, snli_archive)]
