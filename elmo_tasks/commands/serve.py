"""`python -m elmo_tasks serve`: trained models over HTTP."""

import argparse
import os
import shlex

from elmo_tasks.commands.arguments import add_device, add_trained_tasks, trust_of
from elmo_tasks.files.extras import needs
from elmo_tasks.files.jobs import at_least_one
from elmo_tasks.web.addresses import LOCAL_HOSTS, check_address, port_number

__all__ = ["DESCRIPTION", "add_arguments", "run"]

DESCRIPTION = (
    "Serve trained models over HTTP (docs/tasks/serve.md). Needs the extras allennlp and serve."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = "default: $ELMO_TASKS_SERVE, or the six in models/"
    parser.add_argument(
        "model", nargs="*", help=f"names of models, archives, or folders of runs ({default})"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0: all (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=port_number, default=8000, help="port to listen on (default: 8000)"
    )
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name of the service, such as nlp.example.org or *.example.org "
        "(default: $ELMO_TASKS_SERVE_HOSTS, or only localhost, or with --host any)",
    )
    parser.add_argument(
        "--timeout-keep-alive",
        type=at_least_one,
        default=5,
        metavar="SECONDS",
        help="until an idle connection is closed; longer than a reverse proxy keeps it (default: 5)",
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="processes, each with all models (default: 1)"
    )
    add_device(parser)
    add_trained_tasks(parser)


def run(arguments: argparse.Namespace) -> None:
    with needs("serve"):
        import uvicorn
    # Worker processes read them, too.
    trust = trust_of(arguments)
    settings_of_processes = {
        "": shlex.join(arguments.model),
        "_DEVICE": arguments.device,
        "_HOSTS": " ".join(arguments.allowed_host or _allowed_hosts(arguments.host)),
        "_PACKAGES": ",".join(trust["packages"]),
        "_PRECISION": arguments.precision,
        "_THRESHOLD": arguments.threshold,
        "_TRUST": "1" if trust["trusted"] else "",
    }
    for name, value in settings_of_processes.items():
        if value:
            os.environ[f"ELMO_TASKS_SERVE{name}"] = str(value)
    with needs("serve"):
        from elmo_tasks.web.serve import settings
    # Each process would stop at a wrong one, and be started again.
    settings()
    check_address(arguments.host, arguments.port)
    names = ("host", "port", "workers", "timeout_keep_alive")
    options = {name: getattr(arguments, name) for name in names}
    uvicorn.run("elmo_tasks.web.serve:make_app", factory=True, **options)


def _allowed_hosts(host: str) -> list[str]:
    """By default, other machines may reach the service by any name if it listens to them."""
    if host in LOCAL_HOSTS or os.environ.get("ELMO_TASKS_SERVE_HOSTS"):
        return []
    return ["*"]
