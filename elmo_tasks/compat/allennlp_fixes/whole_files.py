"""
Files that AllenNLP 2.10.1 writes in place: a run that is killed meanwhile leaves a half file under the right name.
"""

from functools import wraps
from pathlib import Path
from typing import Any

from elmo_tasks.compat.allennlp_fixes.archives import read_archive
from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.compat.torch_fixes.saved_files import load_without_code
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import check_file, checksum_path, file_with_checksum
from elmo_tasks.files.torch_zip import torch_stream

__all__ = ["write_archives_whole", "write_best_weights_whole", "write_configs_whole"]


def write_configs_whole(params: Module) -> None:
    """
    Symptom: a run that was killed at its start can never be recovered, nor trained again without `--force`: `STATIC
    ERROR` in its config.json.

    Cause: `Params.to_file` writes in place.
    """
    original = params.Params.to_file

    @wraps(original)
    def to_file(self: Any, params_file: Any, *args: Any, **kwargs: Any) -> None:
        with atomic_file(Path(params_file), exclusive=True) as temporary:
            original(self, str(temporary), *args, **kwargs)

    params.Params.to_file = to_file


def write_best_weights_whole(gradient_descent_trainer: Module) -> None:
    """
    Symptom: a run that was killed, or met a full disk, while it wrote best.th ends after `--recover` with status 0 and
    an archive that cannot be opened. Of a full disk, torch says `unexpected pos`.

    Cause: `_save_model_state` writes in place, and gives torch a path. The file now has its SHA-256 next to it.
    """
    trainer = gradient_descent_trainer.GradientDescentTrainer
    original = trainer._save_model_state

    @wraps(original)
    def _save_model_state(self: Any, path: str) -> None:
        with file_with_checksum(Path(path)) as temporary, torch_stream(temporary) as stream:
            original(self, stream)

    trainer._save_model_state = _save_model_state
    link = gradient_descent_trainer.hardlink_or_copy

    @wraps(link)
    def hardlink_or_copy(source: str, destination: str) -> None:
        # In an epoch whose checkpoint AllenNLP has written, best.th is a link to it: the checksum is that of another.
        checksum_path(Path(destination)).unlink(missing_ok=True)
        link(source, destination)

    gradient_descent_trainer.hardlink_or_copy = hardlink_or_copy


def write_archives_whole(archival: Module) -> None:
    """
    Symptom: a training ends with status 0 and an archive that is cut off, or holds weights that cannot be read.

    Cause: `archive_model` writes in place, and puts whatever is in best.th into the archive. The checksums in best.th
    are now compared first, and the archive is written under another name and read once, to its checksum, before it
    replaces an older one.
    """
    original = archival.archive_model

    @wraps(original)
    def archive_model(
        serialization_dir: Any, weights: str = "best.th", archive_path: Any = None, include_in_archive: Any = None
    ) -> str:
        from allennlp.common.checks import ConfigurationError

        path = Path(serialization_dir if archive_path is None else archive_path)
        path = path / "model.tar.gz" if path.is_dir() else path
        packed = Path(serialization_dir, weights)
        if not packed.is_file():
            raise ConfigurationError(
                f"{path} was not written, since the weights of the best epoch must be in {packed}, but that file does "
                "not exist: bring it back, or train again with --force"
            )
        try:
            check_file(packed)
            load_without_code(packed, packed)
        except (ConfigurationError, ValueError) as error:
            raise ConfigurationError(f"{path} was not written, since its weights are damaged: {error}") from error
        with atomic_file(path, exclusive=True) as temporary:
            original(serialization_dir, weights, temporary, include_in_archive)
            # Where there was space for the archive; other folders of temporary files are often small.
            with read_archive(temporary, within=temporary.parent):
                pass
        return str(path)

    archival.archive_model = archive_model
