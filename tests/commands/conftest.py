"""A trained and exported language model."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.language_models import train_tiny


@pytest.fixture
def command(environment: pytest.MonkeyPatch, command: Callable[..., None]) -> Callable[..., None]:
    """Runs `allennlp` in this process, with the variables of our configs at their defaults."""
    return command


@pytest.fixture(scope="package")
def lm_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of one epoch."""
    import elmo_tasks.plugin  # noqa: F401

    folder = tmp_path_factory.mktemp("lm") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ELMO_TASKS_DATA", raising=False)
        train_tiny(folder)
    return folder


@pytest.fixture
def exported(lm_run: Path, tmp_path: Path, command: Callable[..., None]) -> Path:
    """The folder with its three files."""
    command("elmo-export", lm_run / "model.tar.gz", tmp_path / "exported")
    return tmp_path / "exported"
