"""
Archives of models, which may be untrusted, read as data.

`load_archive` has its own code for everything that AllenNLP 2.10.1 does unsafely, and AllenNLP's function of the same
name becomes it: a guard, which `ALLENNLP_TODAY_WITHOUT` does not switch off.
"""

import inspect
import json
import pickle
import re
import shutil
import tempfile
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import partial, wraps
from os import PathLike, fspath
from pathlib import Path
from typing import Any
from unittest import mock

from allennlp_today.files import compare_checksums, unpack
from allennlp_today.import_hooks import Module, after_import, guard, replaces

__all__ = ["add_trust", "is_trusted", "is_untrusted", "load_archive", "loading", "parse_config"]
__all__ += ["parse_model_config", "reading_from", "refuse_outside"]

_LOCK = threading.RLock()
_HINT = "if you trust it, use --trust, or trusted=True in Python"
_NO_CODE = {"trust_remote_code": False}
_HELP = "allow what the archive names: any class, file or address, which may run code"


@dataclass(frozen=True)
class _Loading:
    archive: str
    folder: Path
    weights: Path
    trusted: bool


# The archive that is being loaded in this context, and the archive that a command trusts; `True`: all that it names.
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
    AllenNLP's `load_archive`, for archives that may be untrusted. An archive has files and folders only, a config in
    JSON, and tensors. Of what the config names, only what is listed in `harmless.toml` and by plugins is built, no file
    outside the archive is opened, and nothing is fetched but configs and tokenizers of transformers.

    # Parameters

    trusted : `bool`
        Whether the config may name any class, file or address, as in AllenNLP. It is the default for an archive that
        the config of a trusted one names.
    """
    from allennlp.common.checks import ConfigurationError
    from allennlp.common.file_utils import cached_path
    from allennlp.common.plugins import import_plugins

    from allennlp_today.config_error import FileContentError

    # Not above: its fixes would be registered before the guards, and an error in it would leave out the guards.
    from allennlp_today.training import warn_of_a_training

    name, outer = fspath(archive_file), _LOADING.get()
    trusted = trusted or _TRUSTED.get() in (name, True) or (outer is not None and outer.trusted)
    context = copy_context()
    # One at a time: the first load imports the plugins, and imports change what all threads share.
    with _LOCK:
        import_plugins()
        warn_of_a_training(archive_file)
        with _folder_of(cached_path(archive_file)) as folder:
            given = Path(folder).resolve(), cuda_device, overrides, weights_file, trusted
            try:
                return context.run(_load, name, *given)
            except ConfigurationError as error:
                if isinstance(error, FileContentError):
                    raise
                raise FileContentError(str(error)) from error


def _load(name: str, folder: Path, cuda_device: int, overrides: Any, weights_file: str | None, trusted: bool) -> Any:
    import torch
    from allennlp.common import Params
    from allennlp.common.checks import ConfigurationError
    from allennlp.common.meta import META_NAME, Meta
    from allennlp.models import archival

    from allennlp_today.harmless import check_config

    weights = Path(weights_file or archival.get_weights_path(folder))
    # An ensemble may have no weights of its own.
    if weights.exists():
        compare_checksums(weights)
        # AllenNLP calls `torch.load` without the argument, and a variable can change its default. Reads no tensors.
        try:
            torch.load(weights, map_location="meta", weights_only=True)
        except pickle.UnpicklingError:
            raise ConfigurationError(f"expected tensors, got what may run code: {weights.name} in {name}") from None
    config_path = folder / archival.CONFIG_NAME
    config = Params(_json_config(config_path, overrides, parse=parse_model_config))
    if not trusted:
        try:
            check_config(config.as_dict(quiet=True), folder)
            if (folder / "vocabulary").is_file():
                raise ConfigurationError("expected a folder, got a file: vocabulary")
        except (ConfigurationError, RecursionError) as error:
            raise ConfigurationError(f"{error}: {name} ({_HINT})") from None
    _LOADING.set(_Loading(name, folder, weights, trusted))
    readers = archival._load_dataset_readers(config.duplicate(), str(folder))
    model = archival._load_model(config.duplicate(), str(weights), str(folder), cuda_device)
    meta = Meta.from_path(file) if (file := folder / META_NAME).exists() else None
    if meta is not None:
        archival._check_version_compatibility(name, meta)
    return archival.Archive(model, config, *readers, meta)


def loading() -> _Loading | None:
    """The archive that this context is loading: its `folder`, its file with `weights`, and whether it is `trusted`."""
    return _LOADING.get()


def is_untrusted() -> bool:
    """Whether this context is loading an archive that is not trusted."""
    return (archive := _LOADING.get()) is not None and not archive.trusted


def refuse_outside(path: str | PathLike[str]) -> str:
    """The path, unless the archive that is being loaded is not trusted and it leads outside."""
    from allennlp.common.checks import ConfigurationError

    from allennlp_today.harmless import is_inside

    archive = _LOADING.get()
    if archive is not None and not archive.trusted and not is_inside(path, archive.folder):
        raise ConfigurationError(f"expected a file in the archive, got {path}: {archive.archive} ({_HINT})")
    return fspath(path)


@contextmanager
def reading_from(folder: Path) -> Iterator[None]:
    """While an archive is loaded: files in this folder, which a repair has written, instead of the archive's."""
    archive = _LOADING.get()
    assert archive is not None
    token = _LOADING.set(replace(archive, folder=folder.resolve()))
    try:
        yield
    finally:
        _LOADING.reset(token)


def add_trust(parser: ArgumentParser) -> None:
    """Adds the option --trust."""
    parser.add_argument("--trust", action="store_true", help=_HELP)


def is_trusted(arguments: Namespace) -> bool:
    """Whether a command has --trust or --include-package, for the archives that it is given."""
    return bool(getattr(arguments, "trust", False) or getattr(arguments, "include_package", []))


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


def _json_config(
    path: Path,
    overrides: Any,
    ext_vars: Any = None,
    parse: Callable[[bytes, Path], Any] | None = None,
) -> dict[str, Any]:
    """The config in a file that AllenNLP has written, with overrides of the user, which may be Jsonnet."""
    from allennlp.common.params import parse_overrides, with_overrides

    if isinstance(overrides, str):
        overrides = parse_overrides(overrides, ext_vars=ext_vars)
    config = (parse or parse_config)(path.read_bytes(), path)
    changed: dict[str, Any] = with_overrides(config, overrides)
    return changed


def parse_config(content: bytes, path: Path) -> dict[str, Any]:
    """The content of a config file that AllenNLP has written."""
    from allennlp_today.config_error import FileContentError

    try:
        config = json.loads(_without_comments(content.decode()))
    except (ValueError, RecursionError) as error:
        raise FileContentError(f"expected JSON, got: {error}: {path}") from None
    if not isinstance(config, dict):
        raise FileContentError(f"expected a JSON object, got {config!r:.60}: {path}")
    return config


def parse_model_config(content: bytes, path: Path) -> dict[str, Any]:
    """The same, with the model itself if it was continued from a different archive."""
    config = parse_config(content, path)
    model = config.get("model")
    if isinstance(model, dict) and model.get("type") == "from_archive" and "model" in model:
        config["model"] = model["model"]
    return config


def _without_comments(text: str) -> str:
    """
    JSON without the comments and trailing commas that Jsonnet allows; strings are kept as they are. Nothing is read
    twice: a string or a comment without an end is matched up to the end of the text.
    """
    for left_out in (r"//[^\n]*|#[^\n]*|/\*(?>.*?\*/|.*)", r",(?=\s*+[}\]])"):
        pattern = rf'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|{left_out}'
        text = re.sub(pattern, lambda match: match[1] or "", text, flags=re.DOTALL)
    return text


@guard("allennlp.models.archival")
def load_archives_safely(archival: Module) -> None:
    """
    Symptom: loading an archive writes files outside its temporary folder, follows links in the archive, and reads
    files and the environment; it builds any class that the archive names with any arguments, some of which are
    commands, paths and addresses; from Python, it does not find the classes of plugins. A damaged archive loads with
    other weights.
    Cause: `tarfile.extractall` without a filter, which ignores the last checksum too; the config is Jsonnet, and may
    name any class; only `Predictor.from_path` and the commands import plugins.
    """
    archival.load_archive, archival.extracted_archive = load_archive, _folder_of


@guard("allennlp.common.file_utils")
def open_files_of_the_archive_only(file_utils: Module) -> None:
    """
    Symptom: an archive's config fetches a file, or unpacks one for a second time, without a filter.
    Cause: `cached_path` opens addresses and unpacks archives, such as a file `vocabulary` in the place of the folder.
    While an archive that is not trusted is loaded, it only returns paths in this archive.
    """

    @replaces(file_utils, "cached_path")
    def cached_path(original: Callable[..., str], url_or_filename: Any, *args: Any, **kwargs: Any) -> str:
        return refuse_outside(url_or_filename) if is_untrusted() else original(url_or_filename, *args, **kwargs)


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
            raise ConfigurationError(f"{name} is not installed: `python -m spacy download {name}` installs it")
        original(name)

    util.spacy_download = spacy_download


@guard("allennlp.common.cached_transformers")
def run_no_code_of_transformers(cached_transformers: Module) -> None:
    """
    Symptom: a transformer with code in its repository asks in the terminal whether to run it. An archive with a
    transformer fetches its weights, and then replaces them.
    Cause: transformers asks unless `trust_remote_code` is set. Of an archive that is not trusted, only the config and
    the tokenizer are fetched.
    """

    def closed(original: Any) -> type:
        def method(name: str) -> Any:
            return staticmethod(lambda *args, **options: getattr(original, name)(*args, **_NO_CODE | options))

        return type("Closed", (), {name: method(name) for name in ("from_config", "from_pretrained")})

    cached_transformers.AutoConfig = closed(cached_transformers.AutoConfig)
    cached_transformers.AutoModel = closed(cached_transformers.AutoModel)

    @replaces(cached_transformers, "get_tokenizer")
    def get_tokenizer(original: Callable[..., Any], model_name: str, **kwargs: Any) -> Any:
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
        def from_file(cls, params_file: str | PathLike[str], params_overrides: Any = "", ext_vars: Any = None) -> Any:
            return cls(_json_config(Path(params_file), params_overrides, ext_vars))

    util.Params = JsonParams


@after_import("allennlp.commands.predict", "allennlp.commands.evaluate")
def trust_an_archive(module: Module) -> None:
    """
    Symptom: `allennlp predict` and `evaluate` refuse an archive with classes or files that are not listed.
    Cause: it is not trusted. With `--trust` or `--include-package`, the archive of this command is.
    """
    is_predict = hasattr(module, "Predict")

    @replaces(module.Predict if is_predict else module.Evaluate, "add_subparser")
    def add_subparser(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        parser = original(*args, **kwargs)
        add_trust(parser)
        return parser

    @replaces(module, "_predict" if is_predict else "evaluate_from_args")
    def run(original: Callable[..., Any], args: Namespace) -> Any:
        with _trusting(args.archive_file if is_trusted(args) else False):
            return original(args)


@after_import("allennlp.predictors.predictor")
def trust_an_archive_of_a_predictor(predictor: Module) -> None:
    """
    Symptom: `Predictor.from_path` refuses an archive with classes or files that are not listed.
    Cause: it is not trusted. With `trusted=True`, it is.
    """
    original = predictor.Predictor.from_path.__func__

    @wraps(original)
    def from_path(cls: Any, archive_path: Any, *args: Any, trusted: bool = False, **kwargs: Any) -> Any:
        with _trusting(fspath(archive_path) if trusted else False):
            return original(cls, archive_path, *args, **kwargs)

    predictor.Predictor.from_path = classmethod(from_path)


@after_import("allennlp.commands.train")
def trust_archives_of_the_config(train: Module) -> None:
    """
    Symptom: a training with `--include-package` refuses an archive that its config names.
    Cause: it is not trusted. Now it is, because the user's config names both.
    """

    @replaces(train, "_train_worker")
    def train_worker(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(original).bind(*args, **kwargs).arguments
        with _trusting(bool(given.get("include_package"))):
            return original(*args, **kwargs)


@after_import("allennlp.common.testing.model_test_case")
def trust_archives_of_tests(model_test_case: Module) -> None:
    """
    Symptom: `ensure_model_can_train_save_and_load`, in the tests of a project, refuses the archive that it has written.
    Cause: it is not trusted. Now it is, because the same test has trained the model.
    """
    model_test_case.load_archive = partial(load_archive, trusted=True)


@contextmanager
def _trusting(archive: str | bool) -> Iterator[None]:
    token = _TRUSTED.set(archive)
    try:
        yield
    finally:
        _TRUSTED.reset(token)
