"""`python -m elmo_tasks`: jobs, a service, downloads, configs. Only `embed` needs no AllenNLP."""

import argparse
import logging
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from elmo_tasks.arguments import (
    LOCAL_HOSTS,
    add_device,
    add_trained_tasks,
    at_least_one,
    check_address,
    port_number,
    trust_of,
)
from elmo_tasks.shipped import TRAINING_CONFIGS
from elmo_tasks.version import __version__

__all__ = ["main"]

# The exit statuses that a shell reports for a process killed by SIGINT or SIGPIPE.
_INTERRUPTED, _UNREAD = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status. Errors (without `ELMO_TASKS_DEBUG`) and Ctrl-C print one line."""
    # Of other packages only warnings.
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("elmo_tasks.jobs").setLevel(logging.INFO)
    try:
        parsed = _parser().parse_args(arguments)
        status: int | None = parsed.func(parsed)
        sys.stdout.flush()
        return status or 0
    except BrokenPipeError:
        # The reader of standard output has closed it, for example `| head`: discard what Python writes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _UNREAD
    except (ValueError, OSError, ImportError, RuntimeError, AssertionError) as error:
        if os.environ.get("ELMO_TASKS_DEBUG") or os.environ.get("ALLENNLP_DEBUG"):
            raise
        print("error:", *str(error).split(), "(ELMO_TASKS_DEBUG=1 shows where)", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(str(error) or "interrupted", file=sys.stderr)
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    # Imported here, so that Ctrl-C also prints one line while torch loads, which takes seconds.
    from elmo_tasks import annotate, embed

    parser = argparse.ArgumentParser(prog="python -m elmo_tasks", description=__doc__)
    version = f"elmo_tasks {__version__} (Python {platform.python_version()}, torch {metadata.version('torch')})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="command")
    runs: Any = {embed: embed.embed, annotate: annotate.annotate}
    for module, run in runs.items():
        job = commands.add_parser(run.__name__, help=module.DESCRIPTION, description=module.DESCRIPTION)
        module.add_arguments(job)
        job.set_defaults(func=run)
    description = "Serve trained models over HTTP (docs/tasks/serve.md). Needs the extras allennlp and serve."
    service = commands.add_parser("serve", help=description, description=description)
    default = "default: $ELMO_TASKS_SERVE, or the six in models/"
    service.add_argument("model", nargs="*", help=f"names of models, archives, or folders of runs ({default})")
    service.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0: all (default: 127.0.0.1)")
    service.add_argument("--port", type=port_number, default=8000, help="port to listen on (default: 8000)")
    service.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a further name of the service, such as nlp.example.org or *.example.org "
        "(default: $ELMO_TASKS_SERVE_HOSTS, or only localhost, or with --host any)",
    )
    service.add_argument(
        "--timeout-keep-alive",
        type=at_least_one,
        default=5,
        metavar="SECONDS",
        help="until an idle connection is closed; longer than a reverse proxy keeps it (default: 5)",
    )
    service.add_argument("--workers", type=int, default=1, help="processes, each with all models (default: 1)")
    add_device(service)
    add_trained_tasks(service)
    service.set_defaults(func=_serve)
    description = "Download published biLMs, so they load without a network later."
    download = commands.add_parser("download", help=description, description=description)
    names = "small, medium, original, original-5.5b, efml-LANGUAGE (as in efml-ko), or org/name"
    download.add_argument("name", nargs="+", help=names)
    download.set_defaults(func=_download)
    description = "Copy the training configs to a folder, to use or change them."
    configs = commands.add_parser("configs", help=description, description=description)
    configs.add_argument("folder", type=Path, help="a new folder")
    configs.set_defaults(func=_write_configs)
    return parser


def _serve(arguments: argparse.Namespace) -> None:
    from elmo_tasks.extras import needs

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
        from elmo_tasks.serve import settings
    # Each process would stop at a wrong one, and be started again.
    settings()
    check_address(arguments.host, arguments.port)
    names = ("host", "port", "workers", "timeout_keep_alive")
    options = {name: getattr(arguments, name) for name in names}
    uvicorn.run("elmo_tasks.serve:make_app", factory=True, **options)


def _allowed_hosts(host: str) -> list[str]:
    """By default, other machines may reach the service by any name if it listens to them."""
    if host in LOCAL_HOSTS or os.environ.get("ELMO_TASKS_SERVE_HOSTS"):
        return []
    return ["*"]


def _download(arguments: argparse.Namespace) -> None:
    from elmo_tasks.vectors.pretrained import pretrained_files

    for name in arguments.name:
        folder = pretrained_files(name)[0].parent
        print(f"{name}: {folder}")
        if (digests := folder / "SHA256SUMS").is_file():
            print(digests.read_text(), end="")


def _write_configs(arguments: argparse.Namespace) -> None:
    folder = shutil.copytree(TRAINING_CONFIGS, arguments.folder)
    print(f"wrote {folder}: a config for each task, and lib/, which they import")
    print(f"Next: allennlp train {folder / 'ner_elmo.jsonnet'} -s output/ner_elmo")
    print("It trains on the included sample data. For yours, set ELMO_TASKS_DATA to a folder with ner/train.txt, ...")


if __name__ == "__main__":
    sys.exit(main())
