"""
`allennlp elmo-export`: a trained biLM, or one in any format that `Elmo` reads, in the public
format.
"""

import argparse
from pathlib import Path

import torch
from allennlp.commands.subcommand import Subcommand

from allennlp_today.trust import add_trust, has_trust_option, load_archive
from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.files.atomic_files import atomic_folder
from elmo_tasks.models import BilmLanguageModel
from elmo_tasks.modules.contextual.contextual_bilm import ContextualBilm
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["Export"]

_WEIGHTS = {"hdf5": "weights.hdf5", "safetensors": "weights.safetensors"}


@Subcommand.register("elmo-export")
class Export(Subcommand):
    """
    Write a trained biLM in bilm-tf's format: options.json, weights.hdf5 and vocab.txt. Write only
    the first two for the biLM of a task, also of AllenNLP, and for an ELMoForManyLangs model, whose
    files only our biLM reads.
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser: argparse.ArgumentParser = parser.add_parser(
            self.name, description=self.__doc__, help=self.__doc__
        )
        subparser.add_argument(
            "archive",
            help="archive or run folder of a trained biLM or task, or anything that --bilm accepts",
        )
        subparser.add_argument("folder", type=Path, help="folder to write the files to")
        subparser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
        subparser.add_argument(
            "--format", choices=list(_WEIGHTS), default="hdf5", help="other programs read hdf5"
        )
        subparser.add_argument(
            "--without-softmax", action="store_true", help="omit the softmax, which predicts words"
        )
        subparser.add_argument("--force", action="store_true", help="overwrite existing files")
        add_trust(subparser)
        subparser.set_defaults(func=_export)
        return subparser


def _export(arguments: argparse.Namespace) -> None:
    softmax = None
    words = None
    try:
        options_file, weight_file = pretrained_files(arguments.archive)
        bilm = Bilm.from_files(options_file, weight_file)
    except (OSError, ValueError):
        trained = _module_with_bilm(arguments)
        bilm = trained.bilm
        if isinstance(trained, BilmLanguageModel):
            words = trained.word_list()
            if not arguments.without_softmax:
                softmax = trained.softmax.state_dict()
    replaceable: set[str] = set()
    if arguments.force:
        replaceable = {"options.json", "vocab.txt", *_WEIGHTS.values()}
    # The three files belong together: a mixture of two exports would go unnoticed.
    with atomic_folder(arguments.folder, replaceable) as folder:
        bilm.save(
            folder / "options.json",
            folder / _WEIGHTS[arguments.format],
            softmax=softmax,
            dtype=getattr(torch, arguments.dtype),
        )
        if words is not None:
            words.save(folder / "vocab.txt")
    print(f"wrote {arguments.folder}")


def _module_with_bilm(arguments: argparse.Namespace) -> BilmLanguageModel | ContextualBilm:
    model = load_archive(arguments.archive, trusted=has_trust_option(arguments)).model
    for module in model.modules():
        if isinstance(module, BilmLanguageModel | ContextualBilm):
            return module
    problem = f"expected a model with a biLM, got {type(model).__name__}"
    raise ValueError(f"{problem}: {arguments.archive}") from None
