"""`python -m elmo_tasks serve`: trained models over HTTP."""

import argparse
import os
import shlex
from typing import Any

from elmo_tasks.commands.arguments import add_device, add_trained_tasks, trust_of
from elmo_tasks.files.extras import needs
from elmo_tasks.files.jobs import at_least_one
from elmo_tasks.web.addresses import LOCAL_HOSTS, check_address, port_number

__all__ = ["DESCRIPTION", "add_arguments", "run"]

DESCRIPTION = (
    "Serve trained models over HTTP (docs/tasks/serve.md). Needs the extras allennlp and serve."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    default = "default: $ELMO_TASKS_SERVE, or the six in models/"
    add("model", nargs="*", help=f"names of models, archives, or folders of runs ({default})")
    host = "address to listen on; 0.0.0.0: all (default: 127.0.0.1)"
    add("--host", default="127.0.0.1", help=host)
    add("--port", type=port_number, default=8000, help="port to listen on (default: 8000)")
    allowed_host = (
        "a further name of the service, such as nlp.example.org or *.example.org (default: "
        "$ELMO_TASKS_SERVE_HOSTS, else only localhost, or any name if --host is not local)"
    )
    add("--allowed-host", action="append", default=[], metavar="NAME", help=allowed_host)
    keep_alive = (
        "time after which idle connections are closed; more than a reverse proxy's (default: 5)"
    )
    add("--timeout-keep-alive", type=at_least_one, default=5, metavar="SECONDS", help=keep_alive)
    add("--workers", type=int, default=1, help="processes, each with all models (default: 1)")
    add_device(parser)
    add_trained_tasks(parser)


def run(arguments: argparse.Namespace) -> None:
    with needs("serve"):
        import uvicorn
    # Worker processes read them, too.
    for variable, value in _variables(arguments).items():
        if value:
            os.environ[variable] = str(value)
    with needs("serve"):
        from elmo_tasks.web.serve import settings
    # Each process would stop at a wrong one, and be started again.
    settings()
    check_address(arguments.host, arguments.port)
    uvicorn.run(
        "elmo_tasks.web.serve:make_app",
        factory=True,
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        timeout_keep_alive=arguments.timeout_keep_alive,
    )


def _variables(arguments: argparse.Namespace) -> dict[str, Any]:
    """The environment variables of the service. One without a value is not set."""
    trust = trust_of(arguments)
    hosts = arguments.allowed_host or _allowed_hosts(arguments.host)
    return {
        "ELMO_TASKS_SERVE": shlex.join(arguments.model),
        "ELMO_TASKS_SERVE_DEVICE": arguments.device,
        "ELMO_TASKS_SERVE_HOSTS": " ".join(hosts),
        "ELMO_TASKS_SERVE_PACKAGES": ",".join(trust["packages"]),
        "ELMO_TASKS_SERVE_PRECISION": arguments.precision,
        "ELMO_TASKS_SERVE_THRESHOLD": arguments.threshold,
        "ELMO_TASKS_SERVE_TRUST": "1" if trust["trusted"] else "",
    }


def _allowed_hosts(host: str) -> list[str]:
    """By default, other machines may reach the service by any name if it listens to them."""
    if host in LOCAL_HOSTS or os.environ.get("ELMO_TASKS_SERVE_HOSTS"):
        return []
    return ["*"]
