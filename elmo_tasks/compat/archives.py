"""Safe loading of untrusted archives, which can run code in AllenNLP 2.10.1."""

import contextvars
import json
import tarfile
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_tasks.compat.import_hooks import Module, after_import, replaces
from elmo_tasks.compat.startup import INCLUDED_PACKAGES

# The archive that is being loaded in this context.
_LOADING: contextvars.ContextVar[str | None] = contextvars.ContextVar("loading", default=None)


@after_import("allennlp.models.archival")
def load_archives_safely(archival: Module) -> None:
    """
    Symptom: loading an archive writes files outside its temporary folder, and follows links in the archive; from
    Python, it does not find the classes of plugins.
    Cause: `tarfile.extractall` without a filter; only `Predictor.from_path` and the commands import plugins.
    """
    # Python 3.14 uses this filter by default.
    tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)

    @replaces(archival, "load_archive")
    def load_archive(original: Any, archive_file: str | PathLike[str], *args: Any, **kwargs: Any) -> Any:
        from allennlp.common.plugins import import_plugins

        import_plugins()
        token = _LOADING.set(str(archive_file))
        try:
            return original(archive_file, *args, **kwargs)
        finally:
            _LOADING.reset(token)


@after_import("allennlp.models.archival", "allennlp.training.util")
def read_configs_as_json(module: Module) -> None:
    """
    Symptom: the config of an archive, and with `--recover` of a run, may read local files and the environment.
    Cause: `Params.from_file` evaluates as Jsonnet what AllenNLP has written as JSON.
    """

    class JsonParams(module.Params):
        @classmethod
        def from_file(cls, params_file: str | PathLike[str], params_overrides: Any = "", ext_vars: Any = None) -> Any:
            from allennlp.common.checks import ConfigurationError
            from allennlp.common.params import parse_overrides, with_overrides

            try:
                config = json.loads(Path(params_file).read_text(encoding="utf-8"))
            except ValueError as error:
                raise ConfigurationError(f"expected JSON, got: {error}: {params_file}") from None
            if isinstance(params_overrides, str):
                params_overrides = parse_overrides(params_overrides, ext_vars=ext_vars)
            return cls(with_overrides(config, params_overrides))

    module.Params = JsonParams


@after_import("allennlp.common.registrable")
def refuse_unregistered_types(registrable: Module) -> None:
    """
    Symptom: an archive with the config `"type": "subprocess.Popen"` runs a command when it is loaded.
    Cause: `Registrable.resolve_class_name` imports any module for a name with a dot and calls what it finds there.
    Now only packages of `--include-package` and of plugins are imported while an archive is loaded, and the result must
    be a subclass of the requested class.
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
