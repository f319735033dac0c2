"""
The current folder, which is searched only for a name that the user has given, and for what that
module imports from the same folder. No other file in it replaces or adds a module: with the folder
itself in `sys.path`, any optional package that is not installed could be a file in it.
"""

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType

__all__ = ["search_current_folder"]

# Entries of `sys.path` have this form, so that spawned processes inherit them: `FOLDER/.only-NAME`.
_PREFIX = ".only-"
# The folder in which each module was found, by the name of the module.
_FOLDER_OF: dict[str, str] = {}


def search_current_folder(name: str) -> None:
    """
    If a module that the user has named is not installed, lets Python find it in the current folder,
    after everything else.
    """
    top_level = name.partition(".")[0]
    if top_level in sys.modules or importlib.util.find_spec(top_level) is not None:
        return
    entry = os.path.join(os.getcwd(), f"{_PREFIX}{top_level}")
    if entry not in sys.path:
        sys.path.append(entry)


class _FinderOfNamedModule:
    """
    The finder for an entry `FOLDER/.only-NAME`. In the folder, it finds the module of this name,
    and what that module imports.
    """

    def __init__(self, entry: str) -> None:
        self._folder, file_name = os.path.split(entry)
        if not file_name.startswith(_PREFIX):
            raise ImportError(f"expected an entry of a module in a folder: {entry}")
        self._name = file_name.removeprefix(_PREFIX)

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._name and _FOLDER_OF.get(_importing_module()) != self._folder:
            return None
        spec = PathFinder.find_spec(fullname, [self._folder])
        if spec is not None:
            _FOLDER_OF[fullname] = self._folder
        return spec


def _importing_module() -> str:
    """The top-level name of the module whose code is importing another one."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in ("importlib", __name__.partition(".")[0]):
            return name
        frame = frame.f_back
    return ""


sys.path_hooks.append(_FinderOfNamedModule)
for _entry in sys.path:
    # The parent process has added it, and Python has cached that no hook can handle it.
    if _PREFIX in _entry:
        sys.path_importer_cache.pop(_entry, None)
