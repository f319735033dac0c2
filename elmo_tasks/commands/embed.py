"""`allennlp elmo-embed`: the vectors of a text in a file."""

import argparse

from allennlp.commands.subcommand import Subcommand

from elmo_tasks import embed_job

__all__ = ["Embed"]


@Subcommand.register("elmo-embed")
class Embed(Subcommand):
    """
    Writes the vectors of a text into a file, as `python -m elmo_tasks embed` does, which starts faster.

    Registered as a `Subcommand` with name "elmo-embed".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(
            self.name, description=embed_job.DESCRIPTION, help=embed_job.DESCRIPTION
        )
        embed_job.add_arguments(subparser)
        subparser.set_defaults(func=_embed)
        return subparser


def _embed(arguments: argparse.Namespace) -> None:
    embed_job.embed(arguments)
