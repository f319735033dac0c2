"""`allennlp elmo-data`: the public data of the paper's tasks."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.public_data import CORPORA, EXPLAINED, fetch

__all__ = ["PublicData"]


@Subcommand.register("elmo-data")
class PublicData(Subcommand):
    """Downloads public data into the folder of the data, and explains how to get the rest."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Download public data of the paper's tasks, and lay it out for the configs."
        sub: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        names = ", ".join([*CORPORA, *EXPLAINED])
        sub.add_argument("name", nargs="*", metavar="NAME", help=f"some of {names}; without a name, all are listed")
        sub.add_argument("--to", type=Path, metavar="FOLDER", help="the folder of the data (default: $ELMO_TASKS_DATA)")
        sub.set_defaults(func=_data)
        return sub


def _data(arguments: argparse.Namespace) -> None:
    if not arguments.name:
        for name, corpus in CORPORA.items():
            print(f"{name:12} {corpus.title}: {corpus.note}")
        for name in EXPLAINED:
            print(f"{name:12} not downloaded: `allennlp elmo-data {name}` explains how to get it")
    for name in arguments.name:
        if name in EXPLAINED:
            print(EXPLAINED[name])
            continue
        folder = arguments.to or os.environ.get("ELMO_TASKS_DATA")
        if name not in CORPORA or not folder:
            expected = "--to FOLDER or ELMO_TASKS_DATA" if name in CORPORA else f"a name of {', '.join(CORPORA)}"
            raise ValueError(f"expected {expected}, got {name!r}")
        # A shell does not expand the tilde of --to=~/data.
        folder = Path(folder).expanduser()
        corpus = CORPORA[name]
        print(f"{name}: {corpus.title} ({corpus.note})", file=sys.stderr)
        print(*fetch(corpus, folder), sep="\n")
        print(f"For the configs: export ELMO_TASKS_DATA={shlex.quote(str(folder.absolute()))}", file=sys.stderr)
