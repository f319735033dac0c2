"""
Archives, whoever made them: AllenNLP 2.10.1 treats a `model.tar.gz` as a program, and does not notice a damaged one.
"""

import contextvars
import gzip
import json
import logging
import pickle
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_tasks.compat.import_hooks import Module
from elmo_tasks.files.atomic_files import TEMPORARY, is_full
from elmo_tasks.files.torch_zip import check_zip, reason_of

__all__ = ["extract_safely", "read_archive", "read_config_as_json", "refuse_unregistered_types", "remember_packages"]

logger = logging.getLogger(__name__)

# The weights of a model hardly compress; an archive that unpacks to more than this many times its size is a bomb.
_MAX_RATIO = 100
_FREE_BYTES = 2**24
_MAX_BYTES = 2**35
_MAX_MEMBERS = 10_000
_MAX_CONFIG_DEPTH = 200

# The archive that is being loaded in this context, for the messages of what is refused in it.
_LOADING: contextvars.ContextVar[str | None] = contextvars.ContextVar("loading", default=None)
_INCLUDED_PACKAGES: set[str] = set()
# What AllenNLP and torch raise for damaged files in an archive.
_DAMAGED = (
    *(pickle.UnpicklingError, json.JSONDecodeError, UnicodeError, ArithmeticError, LookupError),
    *(AttributeError, EOFError, OSError, RuntimeError, TypeError),
)


def extract_safely(archival: Module) -> None:
    """
    Symptom: loading an archive writes files outside its temporary folder, follows links in it to files of this
    machine, makes devices and setuid files, hangs at a FIFO, fills the disk, evaluates its config as Jsonnet (which
    reads local files and the environment), and returns weights that differ from those that were saved if a byte of
    the file has changed.

    Cause: `tarfile.extractall` without a filter, `Params.from_file` for a file that AllenNLP has written as JSON, and
    a gzip stream whose checksum at the end is never read.
    """
    original_load = archival.load_archive

    class ArchivedParams(archival.Params):
        @classmethod
        def from_file(
            cls, params_file: str | PathLike[str], params_overrides: Any = "", ext_vars: Any = None
        ) -> "ArchivedParams":
            from allennlp.common import params

            config = _read_config(Path(params_file))
            overrides = params_overrides if isinstance(params_overrides, str) else json.dumps(params_overrides)
            parsed = params.parse_overrides(overrides, ext_vars=ext_vars)
            return cls(params.with_overrides(config, parsed) if parsed else config)

    @wraps(original_load)
    def load_archive(archive_file: str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        from allennlp.common.checks import ConfigurationError

        outer = _LOADING.get()
        token = _LOADING.set(str(archive_file))
        try:
            return original_load(archive_file, *args, **kwargs)
        except _DAMAGED as error:
            if outer is not None and isinstance(error, FileNotFoundError) and not Path(archive_file).exists():
                raise ConfigurationError(
                    f"{outer} has a model of type 'from_archive' and needs the archive that it began with, "
                    f"{archive_file}, but that is not there: bring it back, or, if you load the first yourself, name "
                    "the place of the second with the override model.archive_file"
                ) from error
            # A file that is not there, a GPU without memory, and a full disk say so themselves.
            if not Path(archive_file).exists() or type(error).__name__ == "OutOfMemoryError" or is_full(error):
                raise
            reason = reason_of(error)
            raise ConfigurationError(
                f"{archive_file} must be the whole archive of a trained model, but cannot be loaded: "
                f"{type(error).__name__}: {reason}"
            ) from error
        finally:
            _LOADING.reset(token)

    archival.extracted_archive = read_archive
    archival.Params = ArchivedParams
    archival.load_archive = load_archive


@contextmanager
def read_archive(
    archive_file: str | PathLike[str], cleanup: bool = True, *, within: Path | None = None
) -> Iterator[str]:
    """
    Unpacks an archive into a temporary folder.

    # Parameters

    archive_file
        The archive.
    cleanup
        Whether the folder is removed at the end.
    within
        Where the folder is made, after what a killed process has left there is removed. `None`: where temporary files
        are, `TMPDIR`.

    # Raises

    `ConfigurationError`
        If the archive is damaged, or holds anything but ordinary files in its own folder, or too many or too large.
    `OSError`
        If there is no space for its content.
    """
    prefix = f"{TEMPORARY}unpacked-"
    if within is not None:
        for left in within.glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)
    folder = tempfile.mkdtemp(prefix=prefix, dir=within)
    remove = True
    try:
        logger.info("extracting archive file %s to temp dir %s", archive_file, folder)
        _extract(Path(archive_file), folder)
        remove = cleanup
        yield folder
    finally:
        if remove:
            shutil.rmtree(folder, ignore_errors=True)


def read_config_as_json(util: Module) -> None:
    """
    Symptom: `allennlp train --recover` evaluates the config.json of the run as Jsonnet, which may read local files or
    never end; and if the given config has a key that the one of the run lacks, it ends with a bare `KeyError`.

    Cause: `create_serialization_dir` reads with `Params.from_file` what AllenNLP has written as JSON. It compares the
    config with the given one, and does nothing else with it; for the message it looks up the new key in the old config.
    """
    from allennlp.common.checks import ConfigurationError

    class RecordedParams(util.Params):
        @classmethod
        def from_file(cls, params_file: str | PathLike[str], *args: Any, **kwargs: Any) -> "RecordedParams":
            return cls(_read_json(Path(params_file), str(params_file)))

    original = util.create_serialization_dir

    @wraps(original)
    def create_serialization_dir(*args: Any, **kwargs: Any) -> None:
        params, util.Params = util.Params, RecordedParams
        try:
            original(*args, **kwargs)
        except KeyError as error:
            raise ConfigurationError(
                f"--recover needs the config that the training began with, but its config.json has no {error}: resume "
                "it with that config.json, or train this config in another folder"
            ) from None
        finally:
            util.Params = params

    util.create_serialization_dir = create_serialization_dir


def remember_packages(util: Module) -> None:
    """
    Symptom: none by itself. `refuse_unregistered_types` has to know which packages `--include-package` has named.

    Cause: AllenNLP imports them and forgets their names.
    """
    original = util.import_module_and_submodules

    @wraps(original)
    def import_module_and_submodules(package_name: str, *args: Any, **kwargs: Any) -> None:
        _INCLUDED_PACKAGES.add(package_name.split(".")[0])
        original(package_name, *args, **kwargs)

    util.import_module_and_submodules = import_module_and_submodules


def refuse_unregistered_types(registrable: Module) -> None:
    """
    Symptom: an archive whose config says `"type": "subprocess.Popen"` runs a command when it is loaded.

    Cause: `Registrable.resolve_class_name` imports any module for a name with a dot and calls whatever it finds there.
    While an archive is loaded, only modules of packages that `--include-package` (or a plugin) has named are imported;
    and at all times what is found must be a subclass of the class that is asked for.
    """
    original = registrable.Registrable.resolve_class_name.__func__

    @wraps(original)
    def resolve_class_name(cls: type, name: str) -> tuple[type, str | None]:
        from allennlp.common.checks import ConfigurationError

        archive = _LOADING.get()
        is_registered = name in registrable.Registrable._registry[cls]
        if archive is not None and "." in name and not is_registered:
            package = name.split(".")[0]
            if package not in _INCLUDED_PACKAGES:
                raise ConfigurationError(
                    f"{archive} asks for the class '{name}', which is not registered, and an archive must not choose "
                    f"code to run: if you trust the package, add --include-package {package}"
                )
        found, constructor = original(cls, name)
        if not is_registered and not (isinstance(found, type) and issubclass(found, cls)):
            raise ConfigurationError(f"'{name}' must be a subclass of {cls.__name__}, but is {found!r}")
        return found, constructor

    registrable.Registrable.resolve_class_name = classmethod(resolve_class_name)


class _Counted:
    """The unpacked stream of an archive, which ends with an error where there is too much of it."""

    def __init__(self, stream: gzip.GzipFile, limit: int) -> None:
        self._stream, self._left = stream, limit

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(content)
        if self._left < 0:
            raise tarfile.ReadError(
                f"it unpacks to more than {_MAX_RATIO} times its size (or {_MAX_BYTES:,} bytes), as no trained model "
                "does"
            )
        return content


def _extract(path: Path, folder: str) -> None:
    from allennlp.common.checks import ConfigurationError

    limit = min(_MAX_BYTES, _FREE_BYTES + _MAX_RATIO * path.stat().st_size)
    try:
        with gzip.open(path, "rb") as stream:
            counted = _Counted(stream, limit)
            # A stream: each member is checked and written as it comes.
            with tarfile.open(fileobj=counted, mode="r|") as archive:  # type: ignore[call-overload]
                for number, member in enumerate(archive):
                    if number == _MAX_MEMBERS:
                        raise tarfile.ReadError(f"it has more than {_MAX_MEMBERS:,} files")
                    if member.issparse():
                        raise tarfile.ReadError(f"{member.name!r} is a sparse file, which claims more than it stores")
                    archive.extract(member, folder, filter="data")
            # gzip compares its checksum at the end of the stream, which tarfile does not read.
            while counted.read(2**20):
                pass
        weights = Path(folder, "weights.th")
        if weights.exists():
            check_zip(weights)
    # An OverflowError is a time that no file can have.
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, OSError, OverflowError, ValueError, zlib.error) as error:
        if is_full(error):
            raise OSError(
                error.errno,
                f"there is no space to unpack {path} into {folder}: make some there (TMPDIR names the folder of "
                "temporary files)",
            ) from error
        raise ConfigurationError(
            f"{path} must be a whole archive of a trained model, with ordinary files only, but is not: {error}. If you "
            "trust it, unpack it yourself and give its folder in its place"
        ) from error


def _read_config(path: Path) -> dict[str, Any]:
    from allennlp.common.checks import ConfigurationError

    where = f"{path.name} of {_LOADING.get()}"
    config = _read_json(path, where)
    for part in ("model", "dataset_reader"):
        if not isinstance(config.get(part), dict):
            raise ConfigurationError(f"{where} must have an object {part!r}, but has {config.get(part)!r:.100}")
    _without_cache_folders(config)
    return config


def _read_json(path: Path, where: str) -> dict[str, Any]:
    from allennlp.common.checks import ConfigurationError

    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("it is no object")
        _check_depth(config)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{where} must be JSON, as AllenNLP writes it, but is not: {error}") from error
    return config


def _check_depth(value: Any, depth: int = 0) -> None:
    if depth > _MAX_CONFIG_DEPTH:
        raise ValueError(f"it is nested more than {_MAX_CONFIG_DEPTH} deep")
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(child, depth + 1)


def _without_cache_folders(value: Any) -> None:
    """Removes where the one who trained keeps layers of the biLM, which is nothing to this machine."""
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    # Those of a biLM, or of a transformer in its place.
    if isinstance(value, dict) and ("options" in value or "special_pieces" in value):
        value.pop("cache_folder", None)
    for child in children:
        _without_cache_folders(child)
