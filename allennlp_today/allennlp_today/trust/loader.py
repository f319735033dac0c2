"""
Archives of models, which may be untrusted, read as data.

`load_archive` has its own code for everything that AllenNLP 2.10.1 does unsafely. It replaces
AllenNLP's function of the same name.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from allennlp_today.files import reason_of, warn_of_a_training
from allennlp_today.import_hooks import Module, guard, replace
from allennlp_today.plugins import import_plugins_of_the_user
from allennlp_today.trust.config_files import CONFIG, json_object, overridden, read_config
from allennlp_today.trust.current_archive import (
    TRUST_HINT,
    Loading,
    is_trusted_by_context,
    start_loading,
)
from allennlp_today.trust.unpacking import expect_regular_file, unpack
from allennlp_today.trust.weights import check_weights

__all__ = ["load_archive"]

_META = "meta.json"
_LOCK = threading.RLock()


def load_archive(
    archive_file: str | PathLike[str],
    cuda_device: int = -1,
    overrides: Any = "",
    weights_file: str | None = None,
    *,
    trusted: bool = False,
) -> Any:
    """
    AllenNLP's `load_archive`, for archives that may be untrusted. An archive may contain only files
    and folders: a config in JSON, a vocabulary in lines, and tensors. The classes that the config
    names are built only if `harmless.toml` or a plugin lists them, or if they belong to code of
    your own that is already imported. No file outside the archive is opened, and nothing is fetched
    but configs and tokenizers of transformers.

    # Parameters

    trusted : `bool`
        Whether the config may name any class, file or address, as in AllenNLP. Archives that the
        config of a trusted archive names are trusted by default.
    """
    from allennlp.common.checks import ConfigurationError
    from allennlp.common.file_utils import cached_path

    from allennlp_today.config_error import FileContentError

    name = fspath(archive_file)
    trusted = trusted or is_trusted_by_context(name)
    context = copy_context()
    # One at a time: the first load imports the plugins, and imports change what all threads share.
    with _LOCK:
        import_plugins_of_the_user()
        warn_of_a_training(archive_file)
        with _folder_of(cached_path(archive_file)) as folder:
            options = _Options(cuda_device, overrides, weights_file, trusted)
            try:
                return context.run(_load, name, Path(folder).resolve(), options)
            except ConfigurationError as error:
                message = str(error)
                if name not in message:
                    message = f"{message}: {name}"
                if not Path(name).is_dir():
                    message = message.replace(f"{Path(folder).resolve()}{os.sep}", "")
                raise FileContentError(message) from error


@dataclass(frozen=True)
class _Options:
    """The arguments of `load_archive`, except for the archive."""

    cuda_device: int
    overrides: Any
    weights_file: str | None
    trusted: bool


def _load(name: str, folder: Path, options: _Options) -> Any:
    from allennlp.common import Params
    from allennlp.models import archival

    weights = Path(options.weights_file or archival.get_weights_path(folder))
    # An ensemble may have no weights of its own.
    if weights.exists():
        check_weights(weights)
    _expect_regular_files(folder / "vocabulary")
    config = Params(_config_to_build(name, folder, options))
    meta = _meta_of(folder, name)
    start_loading(Loading(name, folder, weights, options.trusted))
    with _naming_the_archive(name, options.trusted):
        readers = archival._load_dataset_readers(config.duplicate(), str(folder))
        model = archival._load_model(
            config.duplicate(),
            str(weights),
            str(folder),
            options.cuda_device,
        )
    return archival.Archive(model, config, *readers, meta)


def _config_to_build(name: str, folder: Path, options: _Options) -> dict[str, Any]:
    """The config of an archive, with the overrides, in which everything may be built."""
    from allennlp.common.checks import ConfigurationError

    from allennlp_today.trust.allowed import harmless_tables, machine_arguments, without_arguments
    from allennlp_today.trust.walk import PARTS, harmless_config

    if not (folder / CONFIG).exists():
        raise ConfigurationError(f"expected {CONFIG} in {name}")
    config = read_config(folder)
    if options.trusted:
        return overridden(config, options.overrides)
    machine = machine_arguments(harmless_tables())
    try:
        for part in PARTS.keys() & config.keys():
            config[part] = without_arguments(config[part], machine)
        config = overridden(config, options.overrides)
        return harmless_config(config, folder)
    except RecursionError:
        raise ConfigurationError(f"expected fewer levels in the config: {name}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}: {name} ({TRUST_HINT})") from None


def _expect_regular_files(vocabulary: Path) -> None:
    """
    Raises a `FileContentError` for what AllenNLP would open in a vocabulary, and is not a file.
    """
    from allennlp_today.config_error import FileContentError

    if vocabulary.is_file():
        raise FileContentError(f"expected a folder, got a file: {vocabulary}")
    files = list(vocabulary.iterdir()) if vocabulary.is_dir() else []
    for file in files:
        # AllenNLP opens the lock for writing, which would empty a file that it links to.
        if file.name == ".lock" and file.is_symlink():
            raise FileContentError(f"expected a lock that is not a link: {file}")
        try:
            expect_regular_file(file)
        except ValueError as error:
            raise FileContentError(str(error)) from None


def _meta_of(folder: Path, name: str) -> Any:
    """
    The version of AllenNLP that wrote an archive, if it is known; warns if that is newer than this
    one.
    """
    from allennlp.common.meta import Meta
    from allennlp.models import archival

    from allennlp_today.config_error import FileContentError

    file = folder / _META
    if not file.exists():
        return None
    try:
        meta = Meta(**json_object(file))
        archival._check_version_compatibility(name, meta)
    except FileContentError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        message = f"expected the version of AllenNLP ({reason_of(error)}): {file} in {name}"
        raise FileContentError(message) from None
    return meta


@contextmanager
def _naming_the_archive(name: str, trusted: bool) -> Iterator[None]:
    """
    A block whose errors name the archive. An error of a class of a trusted archive is left
    unchanged, for the author of that class.
    """
    from allennlp.common.checks import ConfigurationError

    from allennlp_today.config_error import FileContentError

    try:
        yield
    except (ConfigurationError, OSError):
        raise
    except Exception as error:
        if trusted:
            raise
        message = f"expected a config and the weights of one model ({reason_of(error)}): {name}"
        raise FileContentError(message) from error


@contextmanager
def _folder_of(archive: str, cleanup: bool = True) -> Iterator[str]:
    """The folder, or a temporary one with the files of the archive."""
    if Path(archive).is_dir():
        yield archive
        return
    folder = tempfile.mkdtemp()
    try:
        unpack(archive, Path(folder))
        yield folder
    finally:
        if cleanup:
            shutil.rmtree(folder, ignore_errors=True)


@guard("allennlp.models.archival")
def load_archives_safely(archival: Module) -> None:
    """
    Symptom: loading an archive writes files outside its temporary folder, follows links in the
    archive, and reads files and the environment; it builds any class that the archive names with
    any arguments, some of which are commands, paths and addresses; from Python, it does not find
    the classes of plugins. A damaged archive loads with other weights.
    Cause: `tarfile.extractall` without a filter, which ignores the last checksum too; the config is
    Jsonnet, and may name any class; only `Predictor.from_path` and the commands import plugins.
    """
    replace(archival, "load_archive", load_archive)
    replace(archival, "extracted_archive", _folder_of)
