"""`allennlp elmo-export`: a trained biLM, or a model of ELMoForManyLangs, in the public format."""

import argparse
from pathlib import Path

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.models import load_archive

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.many_langs import model_files
from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.models import BilmLanguageModel

__all__ = ["Export"]

_WEIGHTS = {"hdf5": "weights.hdf5", "safetensors": "weights.safetensors"}


@Subcommand.register("elmo-export")
class Export(Subcommand):
    """
    Writes `options.json`, `weights.hdf5` and `vocab.txt` of a trained biLM in bilm-tf's format, which AllenNLP reads
    too; or a model of ELMoForManyLangs with its dictionaries and without its pickles, which our biLM reads.
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write a trained biLM in the public format: options.json, weights, vocab.txt."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "archive", help="archive of a model 'elmo_bilm', its run, or the folder of a model of ELMoForManyLangs"
        )
        subparser.add_argument("folder", type=Path, help="where to write the files")
        subparser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
        subparser.add_argument(
            "--format", choices=list(_WEIGHTS), default="hdf5", help="of the weights; other programs read hdf5"
        )
        subparser.add_argument("--without-softmax", action="store_true", help="omit the softmax, which predicts words")
        subparser.add_argument("--force", action="store_true", help="replace an earlier export")
        subparser.set_defaults(func=_export)
        return subparser


def _export(arguments: argparse.Namespace) -> None:
    replaceable = {"options.json", "vocab.txt", *_WEIGHTS.values()} if arguments.force else set()
    dtype, weight_name = getattr(torch, arguments.dtype), _WEIGHTS[arguments.format]
    # Weights of one export with the words of another would go unnoticed: the files appear together.
    with atomic_folder(arguments.folder, replaceable) as folder:
        options_file, weight_file = folder / "options.json", folder / weight_name
        if (files := model_files(Path(arguments.archive))) is not None:
            Bilm.from_files(*files).save(options_file, weight_file, dtype=dtype)
            return
        model = load_archive(arguments.archive).model
        if not isinstance(model, BilmLanguageModel):
            raise ValueError(f"expected a model 'elmo_bilm', got a {type(model).__name__}: {arguments.archive}")
        words = model.word_list()
        softmax = None if arguments.without_softmax else model.public_softmax()
        model.bilm.save(
            options_file, weight_file, softmax=softmax, words=None if softmax is None else words.words, dtype=dtype
        )
        words.save(folder / "vocab.txt")
