"""
Archives of models, which may be untrusted, read as data.

`load_archive` has its own code for everything that AllenNLP 2.10.1 does unsafely. AllenNLP's function of the same name
becomes a call of it: a guard, which `ALLENNLP_TODAY_WITHOUT` does not switch off, and which also works if AllenNLP was
imported before.
"""

import json
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from os import PathLike
from pathlib import Path
from typing import Any

from allennlp_today.files import compare_checksums, unpack
from allennlp_today.import_hooks import Module, guard
from allennlp_today.startup import INCLUDED_PACKAGES

__all__ = ["load_archive", "weights_of_loading"]

_LOCK = threading.RLock()
# The archive that is being loaded in this context, and the file of its weights.
_LOADING: ContextVar[str | None] = ContextVar("loading", default=None)
_WEIGHTS: ContextVar[Path | None] = ContextVar("weights", default=None)

# Parts of a config that `allennlp evaluate` builds after the archive is loaded.
_BUILT_LATER = ("evaluation", "data_loader", "validation_data_loader")
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
# Arguments that AllenNLP passes on to transformers, and that lead to no code and no other file.
_HARMLESS = re.compile(
    r"(add|do|output|num|max|is)_\w+|\w+_(token|tokens|side|dropout|prob|size|length|eps)|use_(fast|cache)"
    r"|hidden_act|lowercase|strip_accents|(model_)?max_len(gth)?|return_dict|gradient_checkpointing|layerdrop"
)
_NOT_HARMLESS = ("use_auth_token", "max_memory")


def load_archive(
    archive_file: str | PathLike[str], cuda_device: int = -1, overrides: Any = "", weights_file: str | None = None
) -> Any:
    """
    AllenNLP's `load_archive`, for archives that may be untrusted. An archive has files and folders only, a config in
    JSON, registered classes, and tensors. What else it names is not imported, read or passed on to other libraries,
    unless its package is one of `--include-package`. The arguments and the result are AllenNLP's.
    """
    from allennlp.common.file_utils import cached_path
    from allennlp.common.plugins import import_plugins

    context = copy_context()
    context.run(_LOADING.set, str(archive_file))
    # One at a time: the first load imports the plugins, and imports change what all threads share.
    with _LOCK:
        import_plugins()
        with _folder_of(cached_path(archive_file)) as folder:
            return context.run(_load, folder, cuda_device, overrides, weights_file)


def _load(folder: str, cuda_device: int, overrides: Any, weights_file: str | None) -> Any:
    import torch
    from allennlp.common import Params
    from allennlp.common.meta import META_NAME, Meta
    from allennlp.models import archival

    weights = Path(weights_file or archival.get_weights_path(folder))
    # An ensemble may have no weights of its own.
    if weights.exists():
        compare_checksums(weights)
        # AllenNLP calls `torch.load` without the argument, and a variable can change its default. Reads no tensors.
        torch.load(weights, map_location="meta", weights_only=True)
        _WEIGHTS.set(weights)
    config = Params(_checked(_json_config(Path(folder, archival.CONFIG_NAME), overrides)))
    readers = archival._load_dataset_readers(config.duplicate(), folder)
    model = archival._load_model(config.duplicate(), str(weights), folder, cuda_device)
    meta = Meta.from_path(file) if (file := Path(folder, META_NAME)).exists() else None
    if meta is not None:
        archival._check_version_compatibility(_LOADING.get(), meta)
    return archival.Archive(model, config, *readers, meta)


def weights_of_loading() -> Path | None:
    """The file with the weights of the archive that this context is loading."""
    return _WEIGHTS.get()


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


def _json_config(path: Path, overrides: Any, ext_vars: Any = None) -> dict[str, Any]:
    """The config in a file that AllenNLP has written, with overrides of the user, which may be Jsonnet."""
    from allennlp.common.params import parse_overrides, with_overrides

    from allennlp_today.config_error import ConfigFileError

    try:
        config = json.loads(_without_comments(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(f"expected JSON, got: {error}: {path}") from None
    if isinstance(overrides, str):
        overrides = parse_overrides(overrides, ext_vars=ext_vars)
    changed: dict[str, Any] = with_overrides(config, overrides)
    return changed


def _without_comments(text: str) -> str:
    """JSON without the comments and trailing commas that Jsonnet allows; strings are kept as they are."""
    for left_out in (r"//[^\n]*|#[^\n]*|/\*.*?\*/", r",(?=\s*[}\]])"):
        text = re.sub(rf'("(?:[^"\\]|\\.)*")|{left_out}', lambda match: match[1] or "", text, flags=re.DOTALL)
    return text


def _checked(config: dict[str, Any]) -> dict[str, Any]:
    """The config of the archive, if it hands no arguments to other libraries, and names no classes to be imported."""
    from allennlp.common.plugins import DEFAULT_PLUGINS

    is_trusted = bool(INCLUDED_PACKAGES - {"allennlp", *DEFAULT_PLUGINS})
    for keys, value in _values(config):
        name = str(keys[-1])
        passed_on = len(keys) > 1 and str(keys[-2]).endswith("kwargs")
        is_harmless = _HARMLESS.fullmatch(name) and name not in _NOT_HARMLESS
        if not is_trusted and ((passed_on and not is_harmless) or (name == "trust_remote_code" and value)):
            _refuse(f"expected no argument {name!r} for another library", "the package of your model")
        if keys[0] in _BUILT_LATER and isinstance(value, str) and _DOTTED.fullmatch(value):
            package = value.split(".")[0]
            if package not in INCLUDED_PACKAGES:
                _refuse(f"expected a registered class, got {value!r}", package)
    return config


def _values(part: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Everything in a config, each with its keys from the top."""
    if keys:
        yield keys, part
    if isinstance(part, dict | list):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _values(value, (*keys, key))


def _refuse(message: str, package: str) -> None:
    from allennlp.common.checks import ConfigurationError

    hint = f"if you trust it, add --include-package with {package}"
    raise ConfigurationError(f"{message}: {_LOADING.get()} ({hint})")


@guard("allennlp.models.archival")
def load_archives_safely(archival: Module) -> None:
    """
    Symptom: loading an archive writes files outside its temporary folder, follows links in the archive, and reads
    files and the environment; a library runs code that the archive names; from Python, it does not find the
    classes of plugins. A damaged archive loads with other weights.
    Cause: `tarfile.extractall` without a filter, which ignores the last checksum too; the config is Jsonnet;
    only `Predictor.from_path` and the commands import plugins.
    """

    def ours(archive_file, cuda_device=-1, overrides="", weights_file=None):
        from allennlp_today.archives import load_archive

        return load_archive(archive_file, cuda_device, overrides, weights_file)

    def our_extracted_archive(resolved_archive_file, cleanup=True):
        from allennlp_today.archives import _folder_of

        with _folder_of(resolved_archive_file, cleanup) as folder:
            yield folder

    # Not `replaces`: other modules, which may be imported already, have these functions under their own names.
    for function, replacement in (
        (archival.load_archive, ours),
        (archival.extracted_archive.__wrapped__, our_extracted_archive),
    ):
        function.__code__ = replacement.__code__


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


@guard("allennlp.common.registrable")
def refuse_unregistered_types(registrable: Module) -> None:
    """
    Symptom: an archive with the config `"type": "subprocess.Popen"` runs a command when it is loaded.
    Cause: `Registrable.resolve_class_name` imports any module for a name with a dot and calls what it finds.
    Now only packages of `--include-package` and of plugins are imported while an archive is loaded, and the
    result must be a subclass of the requested class.
    """
    original = registrable.Registrable.resolve_class_name.__func__

    def resolve_class_name(cls: type, name: str) -> tuple[type, str | None]:
        from allennlp.common.checks import ConfigurationError

        if name in registrable.Registrable._registry[cls]:
            return original(cls, name)
        package = name.split(".")[0]
        if _LOADING.get() is not None and "." in name and package not in INCLUDED_PACKAGES:
            _refuse(f"expected a registered {cls.__name__}, got {name!r}", package)
        found, constructor = original(cls, name)
        if not (isinstance(found, type) and issubclass(found, cls)):
            raise ConfigurationError(f"expected a {cls.__name__}, got {found!r}")
        return found, constructor

    registrable.Registrable.resolve_class_name = classmethod(resolve_class_name)
