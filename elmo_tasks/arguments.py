"""Arguments that several commands have."""

import argparse
from typing import Any

__all__ = [
    "PACKAGES",
    "add_device",
    "add_precision",
    "add_trained_tasks",
    "add_trust",
    "at_least_one",
    "layer",
    "trust_of",
]

PACKAGES = "ELMO_TASKS_PACKAGES"
"""The variable with packages of custom classes, which every `TrainedTask` imports."""


class _TooFew(argparse.ArgumentTypeError, ValueError):
    """Printed by argparse as it is, and an error in Python."""


def at_least_one(count: str | int) -> int:
    """A count from Python or from a command line."""
    if int(count) < 1:
        raise _TooFew(f"expected at least 1, got {count}")
    return int(count)


def layer(text: str) -> str | int:
    """The number of a layer, or `mix`, `all` or `top`."""
    return int(text) if text.isdecimal() else text


def add_precision(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    # Not from `Bilm`, because torch would be imported for `--help`.
    choices = ("float32", "bf16", "int8", "auto")
    explained = "of the biLM's products; auto: the fastest (default: float32)"
    parser.add_argument("--precision", choices=choices, default=default, help=explained)


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="cpu, cuda, cuda:1, ...; default: a GPU if there is one")


def add_trust(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--include-package", action="append", default=[], metavar="PACKAGE", help="with your own classes; see --trust")
    add("--trust", action="store_true", help="the models may name any class or file, as with --include-package")


def add_trained_tasks(parser: argparse.ArgumentParser) -> None:
    """Adds the options of trained tasks."""
    add_trust(parser)
    parser.add_argument("--threshold", type=float, default=0.0, help="the lowest probability of a name (default: 0)")
    add_precision(parser)


def trust_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options `packages` and `trusted` of `TrainedTask`. With --include-package, models are trusted."""
    packages = tuple(arguments.include_package)
    return {"packages": packages, "trusted": arguments.trust or bool(packages)}
