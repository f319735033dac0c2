"""A language model that was trained and exported, and configs that are evaluated once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.language_models import train_tiny


@pytest.fixture
def command(environment: pytest.MonkeyPatch, command: Callable[..., None]) -> Callable[..., None]:
    """Runs `allennlp` in this process, with the variables of our configs at their defaults."""
    return command


@pytest.fixture
def error_of(command: Callable[..., None]) -> Callable[..., str]:
    """The line that a command ends with: `error_of("elmo-export", archive, folder)`."""

    def run(name: str, *arguments: object) -> str:
        with pytest.raises(SystemExit) as ended:
            command(name, *arguments)
        line, beginning = ended.value.code, f"allennlp {name}: error: "
        # A text is printed on stderr, and the status is 1.
        assert isinstance(line, str) and line.startswith(beginning) and "\n" not in line
        return line.removeprefix(beginning)

    return run


@pytest.fixture(scope="package")
def lm_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training of one epoch."""
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
