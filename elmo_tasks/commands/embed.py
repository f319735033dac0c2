"""`allennlp elmo-embed`: the vectors of a text in a file."""

import argparse

from allennlp.commands.subcommand import Subcommand

from elmo_tasks.embed import DESCRIPTION, add_arguments, embed

__all__ = ["Embed"]


@Subcommand.register("elmo-embed")
class Embed(Subcommand):
    """Writes the vectors of a text into a file, as `python -m elmo_tasks embed` does, which starts faster."""

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=DESCRIPTION, help=DESCRIPTION)
        add_arguments(subparser)
        subparser.set_defaults(func=embed)
        return subparser
