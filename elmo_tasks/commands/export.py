"""`allennlp elmo-export`: a trained biLM, or one of ELMoForManyLangs, in the public format."""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.models import Model, load_archive
from allennlp.models.archival import CONFIG_NAME

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.many_langs import model_files
from elmo_tasks.distillation import StudentBilm
from elmo_tasks.files.atomic_files import atomic_folder, naming_errors
from elmo_tasks.files.torch_zip import torch_stream
from elmo_tasks.models import BilmLanguageModel
from elmo_tasks.printable import printable
from elmo_tasks.training import FrozenOnceCheckpointer

__all__ = ["Export"]

_WEIGHTS = {"hdf5": "weights.hdf5", "safetensors": "weights.safetensors"}


@Subcommand.register("elmo-export")
class Export(Subcommand):
    """
    Writes `options.json`, `weights.hdf5` and `vocab.txt` of a trained biLM in bilm-tf's format, which our biLM and
    AllenNLP read; or the first two of a student of a biLM, or of a model of ELMoForManyLangs, with its dictionaries and
    without its pickles, which our biLM reads.

    Registered as a `Subcommand` with name "elmo-export".
    """

    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        description = "Write a trained biLM in the public format: options.json, weights, vocab.txt."
        subparser: argparse.ArgumentParser = parser.add_parser(self.name, description=description, help=description)
        subparser.add_argument(
            "archive",
            help="archive of a model 'elmo_bilm' or 'elmo_bilm_student', the folder of its run, or that of a model of "
            "ELMoForManyLangs",
        )
        subparser.add_argument("folder", type=Path, help="where to write the files")
        subparser.add_argument("--dtype", choices=["float32", "float16"], default="float32")
        subparser.add_argument(
            "--format", choices=list(_WEIGHTS), default="hdf5", help="of the weights; other programs read hdf5"
        )
        subparser.add_argument(
            "--without-softmax", action="store_true", help="omit the softmax of an 'elmo_bilm', which predicts words"
        )
        subparser.add_argument("--force", action="store_true", help="overwrite files that are there")
        subparser.set_defaults(func=_export)
        return subparser


def _export(arguments: argparse.Namespace) -> None:
    names = ["options.json", _WEIGHTS[arguments.format], "vocab.txt"]
    replaceable = {"options.json", "vocab.txt", *_WEIGHTS.values()}
    present = sorted(str(arguments.folder / name) for name in replaceable if (arguments.folder / name).exists())
    if present and not arguments.force:
        raise FileExistsError(
            f"{', '.join(present)} must not be there yet, but is: name another folder, or overwrite with --force"
        )
    if (files := model_files(Path(arguments.archive))) is not None:
        names.remove("vocab.txt")
        _export_bilm(Bilm.from_files(*files), arguments.folder, names, replaceable, arguments.dtype)
        return
    model = _model(arguments.archive)
    if isinstance(model, StudentBilm):
        # It predicts no words.
        names.remove("vocab.txt")
        _export_bilm(model.bilm, arguments.folder, names, replaceable, arguments.dtype)
        return
    if not isinstance(model, BilmLanguageModel):
        raise ValueError(
            f"the model of {arguments.archive} must be an 'elmo_bilm' or an 'elmo_bilm_student', but is a "
            f"{type(model).__name__}"
        )
    softmax = None if arguments.without_softmax else model.public_softmax()
    try:
        words = model.word_list()
        # The three files belong together: weights of one export with the words of another would go unnoticed.
        with atomic_folder(arguments.folder, replaceable) as folder:
            options_file, weight_file, word_file = (folder / name for name in names)
            model.bilm.save(
                options_file,
                weight_file,
                softmax=softmax,
                words=None if softmax is None else words.words,
                dtype=getattr(torch, arguments.dtype),
            )
            words.save(word_file)
    except (ValueError, OSError) as error:
        raise ValueError(f"{arguments.archive} cannot be exported: {error}") from error
    print(printable(f"wrote {', '.join(str(arguments.folder / name) for name in names)}"))


def _export_bilm(bilm: Bilm, target: Path, names: list[str], replaceable: set[str], dtype: str) -> None:
    with atomic_folder(target, replaceable) as folder:
        bilm.save(*(folder / name for name in names), dtype=getattr(torch, dtype))
    print(printable(f"wrote {', '.join(str(target / name) for name in names)}"))


def _model(archive: str) -> Model:
    try:
        with TemporaryDirectory(prefix="elmo-export-") as folder:
            return load_archive(archive, weights_file=_weights_of(Path(archive), Path(folder))).model
    except Exception as error:
        # For a file that is no archive, or is damaged, AllenNLP raises errors of any kind, AttributeError too.
        raise ValueError(
            f"{archive} must be the archive of a model, or the folder of its run, but cannot be loaded "
            f"({type(error).__name__}: {error})"
        ) from error


def _weights_of(run: Path, folder: Path) -> str | None:
    """A file, in a folder, with the weights of a run that has no best weights yet; `None` for all others."""
    if not run.is_dir() or any((run / name).exists() for name in ("weights.th", "best.th")):
        return None
    checkpointer = FrozenOnceCheckpointer(run)
    latest = checkpointer.find_latest_checkpoint()
    if latest is None:
        if (run / CONFIG_NAME).exists():
            raise ValueError("it has no checkpoint yet")
        return None
    weights = checkpointer.whole_weights(latest[0])
    print(printable(f"{run} has not ended its first epoch: this exports its last checkpoint, {Path(latest[0]).name}"))
    with naming_errors(folder / "weights.th"), torch_stream(folder / "weights.th") as stream:
        torch.save(weights, stream)
    return str(folder / "weights.th")
