"""The config of a variant, evaluated."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allennlp.common.params import with_overrides

from elmo_tasks import environment
from elmo_tasks.shipped import TRAINING_CONFIGS

__all__ = ["TEMPLATES", "evaluated_config"]

TEMPLATES = TRAINING_CONFIGS / "lib"


def evaluated_config(
    template: Path, arguments: Mapping[str, Any], overrides: Mapping[str, Any], variables: Mapping[str, str]
) -> dict[str, Any]:
    """
    # Parameters

    template : `Path`
        A file with a function.
    arguments : `Mapping[str, Any]`
        What it is called with.
    overrides : `Mapping[str, Any]`
        What is laid over its result, as `allennlp train -o` does: names with dots.
    variables : `Mapping[str, str]`
        External variables, see `elmo_tasks.environment`.

    # Returns

    `Dict[str, Any]`
        The config.

    # Raises

    `ValueError`
        If the template does not take an argument, or an override names what is not in its result.
    """
    if not template.is_file():
        raise FileNotFoundError(
            f"{template} must be there, but is not: install elmo_tasks from its checkout with `pip install --editable`"
        )
    wrong = [name for name in arguments if not name.isidentifier()]
    if wrong:
        raise ValueError(f"arguments of {template.name} must be names, but one is {wrong[0]!r}")
    call = ", ".join(f"{name}={json.dumps(value)}" for name, value in arguments.items())
    with tempfile.NamedTemporaryFile("w", suffix=".jsonnet", encoding="utf-8") as file:
        file.write(f"(import {json.dumps(str(template))})({call})\n")
        file.flush()
        try:
            evaluated = environment.evaluate_file(file.name, dict(variables))
        except RuntimeError as error:
            reason = str(error).removeprefix("RUNTIME ERROR: ").splitlines()[0]
            raise ValueError(f"{template.name} cannot be called with {dict(arguments)}: {reason}") from None
    try:
        config: dict[str, Any] = with_overrides(json.loads(evaluated), dict(overrides))
    except ValueError as error:
        raise ValueError(f"overrides of the configs of {template.stem} must name what is there: {error}") from None
    return config
