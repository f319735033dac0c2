"""`python -m elmo_tasks`: what needs no AllenNLP."""

import argparse
import sys
from collections.abc import Sequence

from elmo_tasks import embed_job

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """
    # Parameters

    arguments : `Sequence[str]`, optional (default = `None`)
        Those of the command line.

    # Returns

    `int`
        The exit status: 0, or 1 after an error, which is one line on stderr.
    """
    parser = argparse.ArgumentParser(prog="python -m elmo_tasks", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="command")
    embed = subparsers.add_parser("embed", help=embed_job.DESCRIPTION, description=embed_job.DESCRIPTION)
    embed_job.add_arguments(embed)
    embed.set_defaults(func=embed_job.embed)
    parsed = parser.parse_args(arguments)
    try:
        parsed.func(parsed)
    except (ValueError, OSError, ImportError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
