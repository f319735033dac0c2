"""The config of a variant, evaluated."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides

from elmo_tasks import environment
from elmo_tasks.shipped import TRAINING_CONFIGS

__all__ = ["SEEDS", "TEMPLATES", "Call", "evaluated_config", "evaluated_configs"]

TEMPLATES = TRAINING_CONFIGS / "lib"

SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")
"""The keys of a config for the seeds of all random numbers."""


class Call(NamedTuple):
    """
    A call of a template.

    # Parameters

    template
        A file with a function.
    arguments
        Those of the function.
    overrides
        Changes to its result, as by `allennlp train -o`: names with dots.
    """

    template: Path
    arguments: Mapping[str, Any]
    overrides: Mapping[str, Any] = {}


def evaluated_config(
    template: Path, arguments: Mapping[str, Any], overrides: Mapping[str, Any], variables: Mapping[str, str]
) -> dict[str, Any]:
    """That of one call, see `evaluated_configs`."""
    (config,) = evaluated_configs([Call(template, arguments, overrides)], variables)
    return config


def evaluated_configs(calls: Sequence[Call], variables: Mapping[str, str]) -> list[dict[str, Any]]:
    """
    The configs of several calls. All at once take a quarter of the time that one after another does: Jsonnet reads its
    library each time.

    # Parameters

    calls
        The calls.
    variables
        External variables, see `elmo_tasks.environment`.

    # Raises

    `ValueError`
        If a template does not take an argument, or an override names a key that is not in its result.
    `FileNotFoundError`
        If a template is not there.
    """
    configs = []
    for call, evaluated in zip(calls, _evaluated(calls, variables), strict=True):
        try:
            configs.append(with_overrides(evaluated, dict(call.overrides)))
        except (ValueError, ConfigurationError) as error:
            raise ValueError(
                f"overrides of the configs of {call.template.stem} must name keys that they have: {error}"
            ) from None
    return configs


def _evaluated(calls: Sequence[Call], variables: Mapping[str, str]) -> list[dict[str, Any]]:
    for template, arguments, _ in calls:
        if not template.is_file():
            raise FileNotFoundError(
                f"{template} is a part of elmo_tasks and must be there, but is not: install elmo_tasks again"
            )
        wrong = [name for name in arguments if not name.isidentifier()]
        if wrong:
            raise ValueError(f"arguments of {template.name} must be names, but one is {wrong[0]!r}")
    with tempfile.NamedTemporaryFile("w", suffix=".jsonnet", encoding="utf-8") as file:
        file.write(f"[{', '.join(map(_text, calls))}]\n")
        file.flush()
        try:
            evaluated: list[dict[str, Any]] = json.loads(environment.evaluate_file(file.name, dict(variables)))
        except ConfigurationError as error:
            if len(calls) > 1:
                # One of them is wrong, and is to be named.
                return [config for call in calls for config in _evaluated([call], variables)]
            reason = str(error).rpartition("RUNTIME ERROR: ")[2].splitlines()[0]
            raise ValueError(
                f"{calls[0].template.name} cannot be called with {dict(calls[0].arguments)}: {reason}"
            ) from None
    return evaluated


def _text(call: Call) -> str:
    given = ", ".join(f"{name}={json.dumps(value)}" for name, value in call.arguments.items())
    return f"(import {json.dumps(str(call.template))})({given})"
