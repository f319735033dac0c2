"""`allennlp elmo-data`: public data for the paper's tasks."""

import argparse
import os
import shlex
import sys
from pathlib import Path

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.paper.public_data import CORPORA, EXPLAINED, OPEN_DATA, fetch, fetch_open

__all__ = ["PublicData"]

_DOWNLOADED = {name: f"{corpus.title} ({corpus.note})" for name, corpus in CORPORA.items()}
_DOWNLOADED["open"] = (
    "the data of the plan `open`, as it was trained on (licences: data/open/README.md)"
)


@Subcommand.register("elmo-data")
class PublicData(Subcommand):
    """Download public data for the paper's tasks, and lay it out for the configs."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        names = ", ".join([*_DOWNLOADED, *EXPLAINED])
        sub.add_argument(
            "name",
            nargs="*",
            metavar="NAME",
            help=f"one or more of {names}; without a name, lists them",
        )
        sub.add_argument(
            "--to",
            type=Path,
            metavar="FOLDER",
            help="the folder of the data (default: $ELMO_TASKS_DATA)",
        )
        source = "for `open`: the folder data/open of a checkout, or its address"
        sub.add_argument(
            "--from", dest="source", default=str(OPEN_DATA), metavar="FOLDER", help=source
        )
        sub.set_defaults(func=_data)
        return sub


def _data(arguments: argparse.Namespace) -> None:
    if not arguments.name:
        for name, description in _DOWNLOADED.items():
            print(f"{name:12} {description}")
        for name in EXPLAINED:
            print(f"{name:12} not downloaded: `allennlp elmo-data {name}` explains how to get it")
    for name in arguments.name:
        if name in EXPLAINED:
            print(EXPLAINED[name])
        else:
            _download(name, arguments)


def _download(name: str, arguments: argparse.Namespace) -> None:
    folder = arguments.to or os.environ.get("ELMO_TASKS_DATA")
    if name not in _DOWNLOADED:
        names = ", ".join([*_DOWNLOADED, *EXPLAINED])
        raise ValueError(f"expected one of {names}, got {name!r}")
    if not folder:
        raise ValueError(f"{name}: expected --to FOLDER or ELMO_TASKS_DATA, got neither")
    # A shell does not expand the tilde of --to=~/data.
    folder = Path(folder).expanduser()
    print(f"{name}: {_DOWNLOADED[name]}", file=sys.stderr)
    if name == "open":
        paths = fetch_open(folder, arguments.source)
    else:
        paths = fetch(CORPORA[name], folder)
    print(*paths, sep="\n")
    variable = f"ELMO_TASKS_DATA={shlex.quote(str(folder.absolute()))}"
    print(f"For the configs: export {variable}", file=sys.stderr)
