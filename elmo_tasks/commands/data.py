"""`allennlp elmo-data`: the public data of the paper's tasks."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.printable import printable_lines
from elmo_tasks.public_data import CORPORA, EXPLAINED, fetch

__all__ = ["PublicData"]


@Subcommand.register("elmo-data")
class PublicData(Subcommand):
    """
    Downloads public data from where its owners publish it, and lays it out as `ELMO_TASKS_DATA` has it; says how to get
    the data that is licensed, or has to be put together.

    Registered as a `Subcommand` with name "elmo-data".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Download public data of the paper's tasks, and lay it out for the configs."
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        names = [*CORPORA, *EXPLAINED]
        sub.add_argument(
            "name", nargs="*", metavar="NAME", help=f"some of {', '.join(names)}; without one, all are listed"
        )
        sub.add_argument("--to", type=Path, metavar="FOLDER", help="the folder of the data (default: $ELMO_TASKS_DATA)")
        sub.set_defaults(func=_data)
        return sub


def _data(arguments: argparse.Namespace) -> None:
    if not arguments.name:
        for name, corpus in CORPORA.items():
            print(f"{name:12} {corpus.title}: {corpus.note}")
        for name in EXPLAINED:
            print(f"{name:12} not downloaded: `allennlp elmo-data {name}` says how to get it")
        return
    if unknown := [name for name in arguments.name if name not in (*CORPORA, *EXPLAINED)]:
        raise ValueError(f"a name must be one of {', '.join((*CORPORA, *EXPLAINED))}, but is {unknown[0]!r}")
    _fetch([name for name in arguments.name if name in CORPORA], arguments.to)
    for name in arguments.name:
        if name in EXPLAINED:
            print(EXPLAINED[name])


def _fetch(names: list[str], to: Path | None) -> None:
    if not names:
        return
    data = os.environ.get("ELMO_TASKS_DATA")
    if to is None and not data:
        raise ValueError("there must be a folder for the data: name it with --to, or set ELMO_TASKS_DATA")
    # A shell leaves the tilde of --to=~/data as it is.
    folder = (Path(data or "") if to is None else to).expanduser()
    for name in names:
        corpus = CORPORA[name]
        print(f"{name}: {corpus.title} ({corpus.note})", file=sys.stderr)
        print(printable_lines("\n".join(map(str, fetch(corpus, folder)))))
    if os.environ.get("ELMO_TASKS_DATA") != str(folder):
        print(f"For the configs: export ELMO_TASKS_DATA={shlex.quote(str(folder.absolute()))}", file=sys.stderr)
