"""Archives of all tasks, with random weights."""

from pathlib import Path
from threading import Lock

import pytest

from elmo_tasks.analysis import LanguageModel
from elmo_tasks.demo.demo import Demo
from elmo_tasks.demo.task_archive import TaskArchive, grouped
from elmo_tasks.demo.texts import Texts
from elmo_tasks.demo.word_indexes import build_indexes
from elmo_tasks.demo.words_in_context import WordsInContext
from elmo_tasks.vectors.elmo import Elmo
from tests.demo.archives import write_archive
from tests.paths import SHIPPED_BILM, TINY_BILM


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


@pytest.fixture(scope="session")
def demo(loaded: list[TaskArchive], tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The three archives, a tiny biLM with indexes of a small text, and another biLM with its softmax."""
    elmo, folder = Elmo.from_pretrained(TINY_BILM), tmp_path_factory.mktemp("indexes")
    return Demo(
        words=WordsInContext(elmo=elmo, texts=Texts(), indexes=build_indexes(elmo, folder / "index")),
        archives=grouped(loaded),
        language_model=LanguageModel(SHIPPED_BILM),
        bilm="<b>tiny</b>",
        lock=Lock(),
    )
