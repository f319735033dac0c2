"""The config of a variant, evaluated."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allennlp.common.checks import ConfigurationError
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

    template
        A file with a function.
    arguments
        Those of the function.
    overrides
        Changes to its result, as by `allennlp train -o`: names with dots.
    variables
        External variables, see `elmo_tasks.environment`.

    # Raises

    `ValueError`
        If the template does not take an argument, or an override names a key that is not in its result.
    `FileNotFoundError`
        If the template is not there.
    """
    if not template.is_file():
        raise FileNotFoundError(
            f"{template} is a part of elmo_tasks and must be there, but is not: install elmo_tasks again"
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
        except ConfigurationError as error:
            reason = str(error).rpartition("RUNTIME ERROR: ")[2].splitlines()[0]
            raise ValueError(f"{template.name} cannot be called with {dict(arguments)}: {reason}") from None
    try:
        config: dict[str, Any] = with_overrides(json.loads(evaluated), dict(overrides))
    except (ValueError, ConfigurationError) as error:
        raise ValueError(
            f"overrides of the configs of {template.stem} must name keys that they have: {error}"
        ) from None
    return config
