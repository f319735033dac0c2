"""
Plugins: installed packages, which are imported with `sys.path` as it is, and modules that the user
has named, which may be in the current folder.
"""

import importlib
import importlib.util
import logging
import os
import pkgutil
from importlib import metadata

from allennlp_today.current_folder import search_current_folder

__all__ = ["entry_points", "import_installed_plugins", "import_package", "import_plugin"]
__all__ += ["import_plugins_of_the_user"]

logger = logging.getLogger(__name__)

_NOT_FOR_IMPORT = {
    # The old name of `allennlp.confidence_checks`, and programs.
    "allennlp.sanity_checks",
    "allennlp.tools",
    # Scripts that register nothing, import all of nltk, SciPy and py-rouge, and download nltk data.
    "allennlp_models.rc.tools.narrativeqa",
    "allennlp_models.rc.tools.orb",
    "allennlp_models.rc.tools.orb_utils",
}


def entry_points(group: str) -> list[metadata.EntryPoint]:
    """
    The entry points of installed packages in a group, sorted by name: `allennlp.plugins` are
    plugins, and `allennlp_today.repairs` repairs.
    """
    # An editable installation in a folder of the path is found twice.
    points = set(metadata.entry_points(group=group))
    return sorted(points, key=lambda entry: (entry.name, entry.value))


def import_installed_plugins() -> None:
    """
    Imports all of AllenNLP, and the plugins that are installed, but nothing that a file names.
    """
    import_package("allennlp")
    if importlib.util.find_spec("allennlp_models"):
        import_package("allennlp_models")
    # AllenNLP's other default plugins, which may be for a different version.
    for name in ("allennlp_semparse", "allennlp_server"):
        if importlib.util.find_spec(name):
            try:
                import_package(name)
            except ImportError as error:
                logger.error("the plugin %s cannot be imported: %s", name, error)
    for entry in entry_points("allennlp.plugins"):
        entry.load()


def import_plugins_of_the_user() -> None:
    """
    Imports the plugins that are installed, and those in AllenNLP's file in the home folder, but
    nothing that a file in the current folder names.
    """
    from allennlp.common.plugins import GLOBAL_PLUGINS_FILENAME, discover_file_plugins

    import_installed_plugins()
    if os.path.isfile(GLOBAL_PLUGINS_FILENAME):
        for name in discover_file_plugins(GLOBAL_PLUGINS_FILENAME):
            import_plugin(name)


def import_plugin(name: str) -> None:
    """Imports a plugin that the user has named."""
    search_current_folder(name)
    try:
        importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"the plugin {name} cannot be imported: {error}") from error


def import_package(name: str, exclude: set[str] | None = None) -> None:
    """Imports a package and its public submodules, except `exclude`."""
    excluded = _NOT_FOR_IMPORT | (exclude or set())
    if importlib.util.find_spec("checklist") is None:
        excluded.add("allennlp.confidence_checks.task_checklists")
    _import_with_submodules(name, excluded)


def _import_with_submodules(name: str, excluded: set[str]) -> None:
    if name in excluded:
        return
    module = importlib.import_module(name)
    folders = list(getattr(module, "__path__", []))
    for _, child, _ in pkgutil.iter_modules(folders[:1]):
        # AllenNLP's rule: private modules and tests contain no plugins.
        if not child.startswith(("_", "test")):
            _import_with_submodules(f"{name}.{child}", excluded)
