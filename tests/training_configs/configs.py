"""Helpers for the tests of the published configs."""

from pathlib import Path
from typing import Any

from allennlp.common import Params

from tests.paths import TRAINING_CONFIGS

# A plan is a list of runs, not a config.
PLANS = {"open.jsonnet", "paper.jsonnet"}
PUBLISHED = sorted({path.name for path in TRAINING_CONFIGS.glob("*.jsonnet")} - PLANS)
PLACES = [["input"], ["output"], ["input", "output"]]


def evaluated(path: Path) -> dict[str, Any]:
    return Params.from_file(path).as_dict(quiet=True)


def at(config: dict[str, Any], key: str) -> Any:
    """The value of a key in the notation of `differences`."""
    value: Any = config
    for name in key.split("."):
        value = value[int(name) if isinstance(value, list) else name]
    return value


def differences(one: Any, other: Any, key: str = "") -> set[str]:
    """The keys at which two configs differ, each as deep as it exists in both."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        one = dict(enumerate(one))
        other = dict(enumerate(other))
    if not (isinstance(one, dict) and isinstance(other, dict)):
        is_equal = one == other and type(one) is type(other)
        return set() if is_equal else {key}
    keys = set()
    for name in one.keys() | other.keys():
        path = f"{key}.{name}".removeprefix(".")
        if name in one and name in other:
            keys |= differences(one[name], other[name], path)
        else:
            keys.add(path)
    return keys
