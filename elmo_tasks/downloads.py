"""`python -m elmo_tasks download`: published biLMs by their names, before they are used."""

import argparse

from elmo_tasks.printable import printable

__all__ = ["DESCRIPTION", "add_arguments", "run"]

DESCRIPTION = "Download published biLMs into the folder where they are looked for."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to a parser."""
    parser.add_argument(
        "name",
        nargs="+",
        help="small, medium, original or original-5.5b; or efml-ko and the like, of ELMoForManyLangs: any other name "
        "lists all",
    )


def run(arguments: argparse.Namespace) -> None:
    """
    Prints the folder of each biLM.

    # Raises

    `ValueError`
        If a name is unknown, or what was downloaded is not that biLM or has changed since.
    `OSError`
        If a biLM cannot be downloaded or written.
    """
    # Not before: it loads torch.
    from elmo_tasks.vectors.pretrained import NAMED_BILMS, pretrained_files

    for name in arguments.name:
        if name not in NAMED_BILMS:
            raise ValueError(f"the name of a biLM must be one of {', '.join(NAMED_BILMS)}, but is {name!r}")
    for name in arguments.name:
        print(printable(f"{name}: {pretrained_files(name)[0].parent}"))
