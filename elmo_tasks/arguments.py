"""Arguments that several commands have."""

import argparse
import os
import socket
from typing import Any

__all__ = [
    "LOCAL_HOSTS",
    "PACKAGES",
    "add_device",
    "add_precision",
    "add_trained_tasks",
    "add_trust",
    "at_least_one",
    "check_address",
    "layer",
    "port_number",
    "trust_of",
]

PACKAGES = "ELMO_TASKS_PACKAGES"
"""The variable with packages of custom classes, which every `TrainedTask` imports."""


LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
"""The names that this machine has for itself."""


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


def port_number(text: str) -> int:
    """The number of a port to listen on; 0 is any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text}")
    return int(text)


def check_address(host: str, port: int) -> None:
    """Raises an error if a server cannot listen there: before models are loaded, not after."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        # An address of IPv4 if there is one: `localhost` may have one of IPv6 that does not work.
        family, _, _, _, address = min(found)
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            if os.name == "posix":
                # As servers do: not in use is a port that only closed connections had.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ValueError(f"cannot listen on {host}, port {port}: {reason}") from None


def add_precision(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    # Not from `Bilm`, because torch would be imported for `--help`.
    choices = ("float32", "bf16", "int8", "auto")
    explained = "of the biLM's products; auto: the fastest (default: float32)"
    parser.add_argument("--precision", choices=choices, help=explained)
    # Not as an argument above, because AllenNLP would add it to the help again.
    parser.set_defaults(precision=default)


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
