"""Fixtures for the tests of elmo_tasks."""

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import torch

from tests.docs.home import make_home
from tests.paths import FIXTURES, TINY_BILM, TRAINING_CONFIGS

if TYPE_CHECKING:
    from elmo_tasks import Elmo
    from tests.task_models import TaskModel

# Triton reads it when it is imported: without a GPU, its kernels run in its interpreter.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

# A slow machine must not fail tests that draw examples. `make test-all` draws 300 of each instead
# of 25.
hypothesis.settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=min(300, int(os.environ.get("ELMO_TASKS_FUZZ", "25"))),
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
)
hypothesis.settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def no_layer_cache() -> Iterator[None]:
    """Ignores a cache set in the shell, so tests compute what they compare."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.delenv("ELMO_TASKS_CACHE", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def rounding() -> Iterator[None]:
    """
    With `ELMO_TASKS_ROUNDING`, products are rounded differently for each shape:
    `make test-rounding`.
    """
    with contextlib.ExitStack() as stack:
        if "ELMO_TASKS_ROUNDING" in os.environ:
            from tests.rounding import NoisyProducts

            stack.enter_context(NoisyProducts())
        yield


@pytest.fixture(scope="session")
def fixtures_root() -> Path:
    """The included small data."""
    return FIXTURES


@pytest.fixture(scope="session")
def elmo() -> "Elmo":
    """The tiny biLM, on the CPU."""
    from elmo_tasks import Elmo

    return Elmo.from_pretrained(TINY_BILM, device="cpu")


@pytest.fixture(scope="session")
def training_configs() -> Path:
    """The published configs."""
    return TRAINING_CONFIGS


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, fixtures_root: Path) -> pytest.MonkeyPatch:
    """
    AllenNLP with our plugin, and configs with the small data and the tiny biLM, regardless of the
    shell.
    """
    import elmo_tasks.plugin  # noqa: F401

    for name in ("ELMO_TASKS_DATA", "ELMO_TASKS_GLOVE", "ELMO_TASKS_LAYER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ELMO_TASKS_BILM", str(TINY_BILM))
    return monkeypatch


@pytest.fixture
def write_variant(
    tmp_path: Path, training_configs: Path, environment: pytest.MonkeyPatch
) -> Callable[..., Path]:
    """
    Writes a variant file of a task:
    `write_variant(task, elmo_at, overrides="{}", small=True, **arguments)`.
    """
    from tests.task_models import variant_config

    def write(task: str, *args: Any, **kwargs: Any) -> Path:
        template = training_configs / "lib" / f"{task}.libsonnet"
        path = tmp_path / "variant.jsonnet"
        path.write_text(variant_config(template, *args, **kwargs))
        return path

    return write


@pytest.fixture
def make_model(write_variant: Callable[..., Path]) -> "Callable[..., TaskModel]":
    """
    Makes a model from the arguments of `write_variant`, with random weights and the words of the
    small data.
    """
    from tests.task_models import model_of

    def make(task: str, *args: Any, **kwargs: Any) -> "TaskModel":
        config = write_variant(task, *args, **kwargs)
        return model_of(task, config)

    return make


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """
    Writes an archive from the arguments of `write_archive`, once:
    `archive(task, places="none", seed=0)`.
    """
    from tests.archives import write_archive

    @cache
    def write_once(task: str, *args: Any) -> Path:
        folder = tmp_path_factory.mktemp("archives") / task
        return write_archive(folder, task, *args)

    return write_once


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a few sentences, questions or documents of each task."""
    home = tmp_path_factory.mktemp("home")
    make_home(home)
    return home / "data"


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """
    Writes one tiny checkpoint per family of transformers: `checkpoint("bert")` returns its folder.
    """
    from tests.modules.contextual.checkpoints import write_checkpoint

    @cache
    def write_once(family: str) -> Path:
        folder = tmp_path_factory.mktemp("checkpoints") / family
        return write_checkpoint(family, folder)

    return write_once
