"""`python -m elmo_tasks`: the commands that need no AllenNLP."""

import argparse
import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from elmo_tasks.printable import UNREAD, drop_unread_stdout, one_line
from elmo_tasks.version import __version__

__all__ = ["main"]

# As a shell reports a process that was ended by SIGINT.
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """
    # Parameters

    arguments
        Those of the command line. `None`: `sys.argv`.

    # Returns

    `int`
        The exit status: 0; 1 after an error and 130 after Ctrl-C, each of which is one line on stderr; 141 if what is
        printed is not read; that of `check-gpu`.
    """
    try:
        parsed = _parser().parse_args(arguments)
        status = parsed.func(parsed) or 0
        # There is none in a process without a terminal.
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except BrokenPipeError as error:
        if drop_unread_stdout():
            return UNREAD
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 1
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(str(error) or "interrupted before anything was done: run the same command again", file=sys.stderr)
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    # Here, since torch takes seconds to import, and Ctrl-C is one line then too.
    from elmo_tasks import configs, downloads, embed_job, gpu_check, verify

    parser = argparse.ArgumentParser(prog="python -m elmo_tasks", description=__doc__)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version, and exit")
    subparsers = parser.add_subparsers(required=True, metavar="command")
    embed = subparsers.add_parser("embed", help=embed_job.DESCRIPTION, description=embed_job.DESCRIPTION)
    embed_job.add_arguments(embed)
    embed.set_defaults(func=embed_job.embed)
    of_downloads = subparsers.add_parser("download", help=downloads.DESCRIPTION, description=downloads.DESCRIPTION)
    downloads.add_arguments(of_downloads)
    of_downloads.set_defaults(func=downloads.run)
    of_configs = subparsers.add_parser("configs", help=configs.DESCRIPTION, description=configs.DESCRIPTION)
    configs.add_arguments(of_configs)
    of_configs.set_defaults(func=configs.write_configs)
    of_verify = subparsers.add_parser("verify", help=verify.DESCRIPTION, description=verify.DESCRIPTION)
    verify.add_arguments(of_verify)
    of_verify.set_defaults(func=verify.run)
    of_gpu = subparsers.add_parser("check-gpu", help=gpu_check.DESCRIPTION, description=gpu_check.DESCRIPTION)
    gpu_check.add_arguments(of_gpu)
    of_gpu.set_defaults(func=gpu_check.check_gpu)
    return parser


class _Version(argparse.Action):
    """Prints the versions. argparse's own action wants them on every start, and without torch there are none."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: Any) -> None:
        torch = metadata.version("torch")
        print(f"elmo_tasks {__version__} (Python {platform.python_version()}, torch {torch})")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
