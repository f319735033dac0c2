"""
Archives of models, which may be untrusted, read as data.

`load_archive` has its own code for everything that AllenNLP 2.10.1 does unsafely, and AllenNLP's
function of the same name becomes it. The guards close what AllenNLP's classes would open while they
are built.
"""

import json
import os
import re
import shutil
import tarfile
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from unittest import mock

from allennlp_today import import_hooks
from allennlp_today.files import reason_of, warn_of_a_training
from allennlp_today.import_hooks import Module, guard, replaces
from allennlp_today.plugins import import_plugins_of_the_user
from allennlp_today.trust.repositories import expect_language_model, expect_tokenizer
from allennlp_today.trust.unpacking import (
    ForwardMember,
    expect_regular_file,
    plain_members,
    unpack,
)
from allennlp_today.trust.weights import check_weights

__all__ = ["UNTRUSTED_TRANSFORMER", "is_untrusted", "load_archive", "loading", "read_config"]
__all__ += ["reading_from", "refuse_outside", "trusting"]

UNTRUSTED_TRANSFORMER = {"trust_remote_code": False, "attn_implementation": "eager"}
"""
Options for `AutoModel.from_config`: a repository may name code, and kernels of another repository.
"""

_LOCK = threading.RLock()
_HINT = "if you trust it, use --trust, or trusted=True in Python"
_NO_CODE = {"trust_remote_code": False}
_MAX_CONFIG = 16 * 2**20
_CONFIG = "config.json"
_META = "meta.json"


@dataclass(frozen=True)
class _Loading:
    archive: str
    folder: Path
    weights: Path
    trusted: bool


# The archive that is being loaded in this context, and the archive that a command trusts; `True`:
# all that it names.
_LOADING: ContextVar[_Loading | None] = ContextVar("loading", default=None)
_TRUSTED: ContextVar[str | bool] = ContextVar("trusted", default=False)


def load_archive(
    archive_file: str | PathLike[str],
    cuda_device: int = -1,
    overrides: Any = "",
    weights_file: str | None = None,
    *,
    trusted: bool = False,
) -> Any:
    """
    AllenNLP's `load_archive`, for archives that may be untrusted. An archive has files and folders
    only, a config in JSON, and tensors. Of what the config names, only what is listed in
    `harmless.toml` and by plugins is built, and classes of your own code that runs already. No file
    outside the archive is opened, and nothing is fetched but configs and tokenizers of
    transformers.

    # Parameters

    trusted : `bool`
        Whether the config may name any class, file or address, as in AllenNLP. It is the default
        for an archive that the config of a trusted one names.
    """
    from allennlp.common.checks import ConfigurationError
    from allennlp.common.file_utils import cached_path

    from allennlp_today.config_error import FileContentError

    name = fspath(archive_file)
    outer = _LOADING.get()
    if _TRUSTED.get() in (name, True) or (outer is not None and outer.trusted):
        trusted = True
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
    """What the user says about an archive."""

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
    _LOADING.set(_Loading(name, folder, weights, options.trusted))
    with _errors_of(name, options.trusted):
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

    from allennlp_today.trust.allowed import harmless_tables, machine_arguments, without_machine
    from allennlp_today.trust.walk import PARTS, harmless_config

    if not (folder / _CONFIG).exists():
        raise ConfigurationError(f"expected {_CONFIG} in {name}")
    config = read_config(folder)
    if options.trusted:
        return _overridden(config, options.overrides)
    machine = machine_arguments(harmless_tables())
    try:
        for part in PARTS.keys() & config.keys():
            config[part] = without_machine(config[part], machine)
        config = _overridden(config, options.overrides)
        return harmless_config(config, folder)
    except RecursionError:
        raise ConfigurationError(f"expected fewer levels in the config: {name}") from None
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}: {name} ({_HINT})") from None


def _expect_regular_files(vocabulary: Path) -> None:
    """
    Raises a `FileContentError` for what AllenNLP would open in a vocabulary, and is not a file.
    """
    from allennlp_today.config_error import FileContentError

    if vocabulary.is_file():
        raise FileContentError(f"expected a folder, got a file: {vocabulary}")
    files = list(vocabulary.iterdir()) if vocabulary.is_dir() else []
    for file in files:
        # The file that it locks is emptied.
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
        meta = Meta(**_json_object(file))
        archival._check_version_compatibility(name, meta)
    except FileContentError:
        raise
    except (AttributeError, TypeError, ValueError) as error:
        message = f"expected the version of AllenNLP ({reason_of(error)}): {file} in {name}"
        raise FileContentError(message) from None
    return meta


@contextmanager
def _errors_of(name: str, trusted: bool) -> Iterator[None]:
    """
    Names the archive in errors. What a class of a trusted archive raises is for its author, and
    unchanged.
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


def loading() -> _Loading | None:
    """
    The archive that this context is loading: its `folder`, its file with `weights`, and whether it
    is `trusted`.
    """
    return _LOADING.get()


def is_untrusted() -> bool:
    """Whether this context is loading an archive that is not trusted."""
    archive = _LOADING.get()
    return archive is not None and not archive.trusted


def refuse_outside(path: str | PathLike[str]) -> str:
    """The path, unless the archive that is being loaded is not trusted and it leads outside."""
    from allennlp.common.checks import ConfigurationError

    from allennlp_today.trust.walk import is_inside

    archive = _LOADING.get()
    if archive is None or archive.trusted:
        return fspath(path)
    if not is_inside(path, archive.folder):
        message = f"expected a file in the archive, got {path}: {archive.archive} ({_HINT})"
        raise ConfigurationError(message)
    return fspath(path)


@contextmanager
def reading_from(folder: Path) -> Iterator[None]:
    """
    While an archive is loaded: files in this folder, which a repair has written, instead of the
    archive's.
    """
    archive = _LOADING.get()
    assert archive is not None
    token = _LOADING.set(replace(archive, folder=folder.resolve()))
    try:
        yield
    finally:
        _LOADING.reset(token)


@contextmanager
def trusting(archive: str | bool) -> Iterator[None]:
    """A block that trusts the archive of this name, or with `True` all that it opens."""
    token = _TRUSTED.set(archive)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


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


def read_config(archive: str | PathLike[str]) -> dict[str, Any]:
    """
    The config in an archive, or in the folder of a model or a run. A model that continued from a
    different archive is replaced by that archive's, which the config includes.
    """
    config = _read_config(archive)
    model = config.get("model")
    if isinstance(model, dict) and model.get("type") == "from_archive" and "model" in model:
        config["model"] = model["model"]
    return config


def _read_config(archive: str | PathLike[str]) -> dict[str, Any]:
    """AllenNLP writes the config first, so the weights are not read."""
    from allennlp_today.config_error import FileContentError

    path = Path(archive)
    if path.is_dir():
        return _json_object(path / _CONFIG)
    expect_regular_file(path)
    try:
        with tarfile.open(path, tarinfo=ForwardMember) as tar:
            for member in plain_members(tar):
                if member.name == _CONFIG:
                    content: Any = tar.extractfile(member)
                    return _parsed(content.read(_MAX_CONFIG + 1), path)
    except (EOFError, OSError, ValueError, tarfile.TarError, zlib.error) as error:
        if isinstance(error, FileContentError):
            raise
        raise FileContentError(f"expected a whole archive ({reason_of(error)}): {path}") from error
    raise FileContentError(f"expected {_CONFIG} in an archive: {path}")


def _json_object(path: Path) -> dict[str, Any]:
    from allennlp_today.config_error import FileContentError

    try:
        expect_regular_file(path)
    except ValueError as error:
        raise FileContentError(str(error)) from None
    with open(path, "rb") as file:
        return _parsed(file.read(_MAX_CONFIG + 1), path)


def _overridden(config: dict[str, Any], overrides: Any, ext_vars: Any = None) -> dict[str, Any]:
    """A config with overrides of the user, which may be Jsonnet."""
    from allennlp.common.params import parse_overrides, with_overrides

    if isinstance(overrides, str):
        overrides = parse_overrides(overrides, ext_vars=ext_vars)
    changed: dict[str, Any] = with_overrides(config, overrides)
    return changed


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    """The content of a file of JSON that AllenNLP has written."""
    from allennlp_today.config_error import FileContentError

    if len(content) > _MAX_CONFIG:
        raise FileContentError(f"expected at most {_MAX_CONFIG:,} bytes of JSON: {path}")
    try:
        config = json.loads(_without_comments(content.decode()))
    except (ValueError, RecursionError) as error:
        raise FileContentError(f"expected JSON, got: {error}: {path}") from None
    if not isinstance(config, dict):
        raise FileContentError(f"expected a JSON object, got {config!r:.60}: {path}")
    return config


def _without_comments(text: str) -> str:
    """
    JSON without the comments and trailing commas that Jsonnet allows; strings are kept as they are.
    Nothing is read twice: a string or a comment without an end is matched up to the end of the
    text.
    """
    for left_out in (r"//[^\n]*|#[^\n]*|/\*(?>.*?\*/|.*)", r",(?=\s*+[}\]])"):
        pattern = rf'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|{left_out}'
        text = re.sub(pattern, lambda match: match[1] or "", text, flags=re.DOTALL)
    return text


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
    import_hooks.replace(archival, "load_archive", load_archive)
    import_hooks.replace(archival, "extracted_archive", _folder_of)


@guard("allennlp.common.file_utils")
def open_files_of_the_archive_only(file_utils: Module) -> None:
    """
    Symptom: an archive's config fetches a file, or unpacks one for a second time, without a filter.
    Cause: `cached_path` opens addresses and unpacks archives, such as a file `vocabulary` in the
    place of the folder. While an archive that is not trusted is loaded, it only returns paths in
    this archive.
    """

    @replaces(file_utils, "cached_path")
    def cached_path(
        original: Callable[..., str],
        url_or_filename: Any,
        *args: Any,
        **kwargs: Any,
    ) -> str:
        if is_untrusted():
            return refuse_outside(url_or_filename)
        return original(url_or_filename, *args, **kwargs)


@guard("allennlp.common.util")
def install_nothing(util: Module) -> None:
    """
    Symptom: an archive starts an installer: its tokenizer is a pipeline of spaCy that is missing.
    Cause: `get_spacy_model` downloads and installs it.
    """
    original = util.spacy_download

    def spacy_download(name: str) -> None:
        from allennlp.common.checks import ConfigurationError

        if is_untrusted():
            message = f"{name} is not installed: `python -m spacy download {name}` installs it"
            raise ConfigurationError(message)
        original(name)

    import_hooks.replace(util, "spacy_download", spacy_download)


@guard("allennlp.common.cached_transformers")
def run_no_code_of_transformers(cached_transformers: Module) -> None:
    """
    Symptom: a transformer with code in its repository asks in the terminal whether to run it, and
    one that names kernels, a backbone with code, or any class of transformers as its tokenizer,
    gets them. An archive with a transformer fetches its weights, and then replaces them.
    Cause: transformers asks unless `trust_remote_code` is set, and does what the files of the
    repository say. Of an archive that is not trusted, only the config and the tokenizer are
    fetched.
    """

    # Not subclasses: they would import transformers, which most programs do not use.
    original_config = cached_transformers.AutoConfig
    original_model = cached_transformers.AutoModel

    class AutoConfig:
        @staticmethod
        def from_pretrained(model_name: str, *args: Any, **options: Any) -> Any:
            if is_untrusted():
                expect_language_model(model_name)
            return original_config.from_pretrained(model_name, *args, **_NO_CODE | options)

    class AutoModel:
        @staticmethod
        def from_config(*args: Any, **options: Any) -> Any:
            defaults = UNTRUSTED_TRANSFORMER if is_untrusted() else _NO_CODE
            return original_model.from_config(*args, **defaults | options)

        @staticmethod
        def from_pretrained(*args: Any, **options: Any) -> Any:
            return original_model.from_pretrained(*args, **_NO_CODE | options)

    import_hooks.replace(cached_transformers, "AutoConfig", AutoConfig)
    import_hooks.replace(cached_transformers, "AutoModel", AutoModel)

    @replaces(cached_transformers, "get_tokenizer")
    def get_tokenizer(original: Callable[..., Any], model_name: str, **kwargs: Any) -> Any:
        if is_untrusted():
            expect_tokenizer(model_name)
            expect_language_model(model_name)
        return original(model_name, **_NO_CODE | kwargs)

    @replaces(cached_transformers, "get")
    def get(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if not is_untrusted():
            return original(*args, **kwargs)
        # A different cache: the weights are random until those of the archive are loaded.
        with mock.patch.object(cached_transformers, "_model_cache", {}):
            return original(*args, **kwargs | {"load_weights": False})


@guard("allennlp.training.util")
def read_recovered_configs_as_json(util: Module) -> None:
    """
    Symptom: with `--recover`, the config of a run may read local files and the environment.
    Cause: `Params.from_file` evaluates as Jsonnet what AllenNLP has written as JSON.
    """

    class JsonParams(util.Params):
        @classmethod
        def from_file(
            cls,
            params_file: str | PathLike[str],
            params_overrides: Any = "",
            ext_vars: Any = None,
        ) -> Any:
            return cls(_overridden(_json_object(Path(params_file)), params_overrides, ext_vars))

    import_hooks.replace(util, "Params", JsonParams)
