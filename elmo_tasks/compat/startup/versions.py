"""
Versions of AllenNLP that the fixes of this package were written for.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["check_allennlp_models_version", "check_allennlp_version"]

SUPPORTED = "2.10.1"


@contextmanager
def check_allennlp_version() -> Iterator[None]:
    """
    Symptom: with another AllenNLP, the fixes would replace functions that do something else.

    Cause: they replace functions of 2.10.1 (the last release) by name. Raised when AllenNLP is imported, and never
    when only torch is.
    """
    yield
    _check("allennlp")


@contextmanager
def check_allennlp_models_version() -> Iterator[None]:
    """
    Symptom and cause as in `check_allennlp_version`, for allennlp-models.
    """
    yield
    _check("allennlp_models")


def _check(package: str) -> None:
    found = getattr(importlib.import_module(f"{package}.version"), "VERSION", "unknown")
    if found != SUPPORTED:
        distribution = package.replace("_", "-")
        raise ImportError(
            f"elmo_tasks runs {distribution} {SUPPORTED} on the current torch by replacing some of its functions, "
            f"and works with that version only; the installed version is {found}. Remedy: "
            f"`pip install --no-deps {distribution}=={SUPPORTED}`, or uninstall elmo_tasks.",
            name=package,
        )
