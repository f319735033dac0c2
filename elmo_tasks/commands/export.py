"""`allennlp elmo-export`: a trained biLM in the public format."""

import argparse
from pathlib import Path

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.models import Model, load_archive

from elmo_tasks.commands.endings import endings_in_one_line
from elmo_tasks.models import BilmLanguageModel

__all__ = ["Export"]


@Subcommand.register("elmo-export")
class Export(Subcommand):
    """
    Writes `options.json`, `weights.hdf5` and `vocab.txt` of a trained biLM in bilm-tf's format, which our biLM and
    AllenNLP read.

    Registered as a `Subcommand` with name "elmo-export".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write a trained biLM in the public format: options.json, weights.hdf5, vocab.txt."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument("archive", help="archive of a model 'elmo_bilm', or the folder of its run")
        subparser.add_argument("folder", type=Path, help="where to write the three files")
        subparser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
        subparser.add_argument("--without-softmax", action="store_true", help="omit the softmax, which predicts words")
        subparser.add_argument("--force", action="store_true", help="overwrite files that are there")
        subparser.set_defaults(func=_export)
        return subparser


def _export(arguments: argparse.Namespace) -> None:
    files = [arguments.folder / name for name in ("options.json", "weights.hdf5", "vocab.txt")]
    with endings_in_one_line("elmo-export", resume="the same command with --force starts over"):
        present = [str(file) for file in files if file.exists()]
        if present and not arguments.force:
            raise FileExistsError(
                f"{', '.join(present)} must not be there yet, but is: name another folder, or overwrite with --force"
            )
        model = _model(arguments.archive)
        if not isinstance(model, BilmLanguageModel):
            raise ValueError(
                f"the model of {arguments.archive} must be an 'elmo_bilm', but is a {type(model).__name__}"
            )
        softmax = None if arguments.without_softmax else model.public_softmax()
        try:
            words = model.word_list()
            arguments.folder.mkdir(parents=True, exist_ok=True)
            model.bilm.save(files[0], files[1], softmax=softmax, dtype=getattr(torch, arguments.dtype))
            words.save(files[2])
        except (ValueError, OSError) as error:
            raise ValueError(f"{arguments.archive} cannot be exported: {error}") from error
    print(f"wrote {', '.join(map(str, files))}")


def _model(archive: str) -> Model:
    try:
        return load_archive(archive).model
    except Exception as error:
        # For a file that is no archive, or is damaged, AllenNLP raises errors of any kind, AttributeError too.
        raise ValueError(
            f"{archive} must be the archive of a model, or the folder of its run, but cannot be loaded "
            f"({type(error).__name__}: {error})"
        ) from error
