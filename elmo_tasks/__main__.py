"""
Vectors and annotations of a corpus, an HTTP service, downloads and configs. `annotate` and `serve`
need AllenNLP.
"""

import argparse
import logging
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from elmo_tasks.files.shipped import TRAINING_CONFIGS
from elmo_tasks.version import __version__

__all__ = ["main"]

# The exit statuses that a shell reports for a process killed by SIGINT or SIGPIPE.
_INTERRUPTED, _UNREAD = 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Runs a command and returns its exit status. Errors (without `ELMO_TASKS_DEBUG`) and Ctrl-C print
    one line.
    """
    # Other packages log only warnings.
    logging.basicConfig(format="%(asctime)s %(message)s")
    logging.getLogger("elmo_tasks.files.jobs").setLevel(logging.INFO)
    try:
        parsed = _parser().parse_args(arguments)
        status: int | None = parsed.func(parsed)
        sys.stdout.flush()
        return status or 0
    except BrokenPipeError:
        # The reader of standard output has closed it, for example `| head`: discard what Python
        # writes at exit.
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
    from elmo_tasks.commands import annotate, embed, serve

    parser = argparse.ArgumentParser(prog="python -m elmo_tasks", description=__doc__)
    torch_version = metadata.version("torch")
    version = (
        f"elmo_tasks {__version__} (Python {platform.python_version()}, torch {torch_version})"
    )
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="command")
    for module in (embed, annotate, serve):
        name = module.__name__.rpartition(".")[2]
        command = commands.add_parser(name, help=module.DESCRIPTION, description=module.DESCRIPTION)
        module.add_arguments(command)
        command.set_defaults(func=module.run)
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


def _download(arguments: argparse.Namespace) -> None:
    from elmo_tasks.vectors.pretrained import pretrained_files

    for name in arguments.name:
        folder = pretrained_files(name)[0].parent
        print(f"{name}: {folder}")
        if (digests := folder / "SHA256SUMS").is_file():
            print(digests.read_text(), end="")


def _write_configs(arguments: argparse.Namespace) -> None:
    folder = shutil.copytree(TRAINING_CONFIGS, arguments.folder)
    print(
        f"wrote {folder}: a config for each task, lib/, which they import, and expanded/, "
        "their JSON"
    )
    print(f"Next: allennlp train {folder / 'ner_elmo.jsonnet'} -s output/ner_elmo")
    print(
        "It trains on the included sample data. For yours, set ELMO_TASKS_DATA to a folder with "
        "ner/train.txt, ..."
    )


if __name__ == "__main__":
    sys.exit(main())
