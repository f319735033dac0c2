"""Safe loading of untrusted archives, which can run code in AllenNLP 2.10.1."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from os import PathLike
from pathlib import Path
from typing import Any

from allennlp_today.files import unpack, whole_zip
from allennlp_today.import_hooks import Module, after_import, replaces
from allennlp_today.startup import INCLUDED_PACKAGES

__all__ = ["weights_of_loading"]

# The archive that is being loaded in this context, and the file of its weights.
_LOADING: ContextVar[str | None] = ContextVar("loading", default=None)
_WEIGHTS: ContextVar[Path | None] = ContextVar("weights", default=None)


def weights_of_loading() -> Path | None:
    """The file with the weights of the archive that this context is loading."""
    return _WEIGHTS.get()


@after_import("allennlp.models.archival")
def load_archives_safely(archival: Module) -> None:
    """
    Symptom: loading an archive writes files outside its temporary folder, and follows links in the archive;
    from Python, it does not find the classes of plugins. A damaged archive loads with other weights.
    Cause: `tarfile.extractall` without a filter, which ignores the last checksum too; only
    `Predictor.from_path` and the commands import plugins.
    """

    @replaces(archival, "extracted_archive")
    @contextmanager
    def extracted_archive(original: Any, resolved_archive_file: str, cleanup: bool = True) -> Iterator[str]:
        folder = tempfile.mkdtemp()
        try:
            unpack(resolved_archive_file, Path(folder))
            yield folder
        finally:
            if cleanup:
                shutil.rmtree(folder, ignore_errors=True)

    @replaces(archival, "load_archive")
    def load_archive(original: Any, archive_file: str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        from allennlp.common.plugins import import_plugins

        import_plugins()
        context = copy_context()
        context.run(_LOADING.set, str(archive_file))
        return context.run(original, archive_file, *args, **kwargs)

    @replaces(archival, "_load_model")
    def load_model(original: Any, config: Any, weights_path: str, *args: Any, **kwargs: Any) -> Any:
        context = copy_context()
        context.run(_WEIGHTS.set, whole_zip(Path(weights_path)))
        return context.run(original, config, weights_path, *args, **kwargs)


@after_import("allennlp.models.archival", "allennlp.training.util")
def read_configs_as_json(module: Module) -> None:
    """
    Symptom: the config of an archive, and with `--recover` of a run, may read local files and the environment.
    Cause: `Params.from_file` evaluates as Jsonnet what AllenNLP has written as JSON. In archives that
    somebody packed themselves, the config may have comments and trailing commas.
    """

    class JsonParams(module.Params):
        @classmethod
        def from_file(cls, params_file: str | PathLike[str], params_overrides: Any = "", ext_vars: Any = None) -> Any:
            from allennlp.common.params import parse_overrides, with_overrides

            from allennlp_today.config_error import ConfigFileError

            try:
                config = json.loads(_without_comments(Path(params_file).read_text(encoding="utf-8")))
            except ValueError as error:
                raise ConfigFileError(f"expected JSON, got: {error}: {params_file}") from None
            if isinstance(params_overrides, str):
                params_overrides = parse_overrides(params_overrides, ext_vars=ext_vars)
            return cls(with_overrides(config, params_overrides))

    module.Params = JsonParams


def _without_comments(text: str) -> str:
    """JSON without the comments and trailing commas that Jsonnet allows; strings are kept as they are."""
    for left_out in (r"//[^\n]*|#[^\n]*|/\*.*?\*/", r",(?=\s*[}\]])"):
        text = re.sub(rf'("(?:[^"\\]|\\.)*")|{left_out}', lambda match: match[1] or "", text, flags=re.DOTALL)
    return text


@after_import("allennlp.common.registrable")
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
            raise ConfigurationError(
                f"expected a registered {cls.__name__}, got {name!r}: {_LOADING.get()} (if you trust the package, add "
                f"--include-package {package})"
            )
        found, constructor = original(cls, name)
        if not (isinstance(found, type) and issubclass(found, cls)):
            raise ConfigurationError(f"expected a {cls.__name__}, got {found!r}")
        return found, constructor

    registrable.Registrable.resolve_class_name = classmethod(resolve_class_name)
