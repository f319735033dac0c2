"""`python -m elmo_tasks configs FOLDER`: copies of the training configs, to be changed."""

import argparse
import shutil
from pathlib import Path

from elmo_tasks.shipped import TRAINING_CONFIGS

__all__ = ["DESCRIPTION", "add_arguments", "write_configs"]

DESCRIPTION = "Write the training configs into a folder, to train with them or to change them."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command to a parser."""
    parser.add_argument("folder", type=Path, help="folder to write to, which is created if it does not exist")
    parser.add_argument("--force", action="store_true", help="overwrite configs that are there")


def write_configs(arguments: argparse.Namespace) -> None:
    """
    Copies the configs and what they import, and prints what to do next.

    # Raises

    `FileExistsError`
        If one of the files is there, and `--force` is not given.
    """
    folder: Path = arguments.folder
    sources = sorted(path for path in TRAINING_CONFIGS.rglob("*.*sonnet") if path.is_file())
    targets = [folder / source.relative_to(TRAINING_CONFIGS) for source in sources]
    present = [str(target) for target in targets if target.exists()]
    if present and not arguments.force:
        raise FileExistsError(
            f"the configs must not be in '{folder}' yet, but {present[0]} is, and {len(present) - 1} more are: name "
            "another folder, or overwrite them with --force"
        )
    for source, target in zip(sources, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    print(f"wrote {len(targets)} files to {folder}: a config for each task, and lib/, which they import")
    print(f"Next: allennlp train {folder / 'ner_elmo.jsonnet'} -s output/ner_elmo")
    print(
        "It trains on the small data that ships; for your own, set ELMO_TASKS_DATA to a folder with ner/train.txt, ..."
    )
