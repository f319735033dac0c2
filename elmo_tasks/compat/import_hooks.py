"""
Code that runs around and after the import of a named module.

`wrapt` has hooks that run *after* an import; most fixes need no more. A few modules fail (or reach for the
network) while their own top-level code runs, so something has to be different *during* that import:
`around_import` does that with a context manager.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from wrapt import register_post_import_hook

__all__ = ["Module", "after_import", "around_import", "temporary_modules"]

Module = Any
"""A module whose functions are replaced; for `ModuleType` a checker of types forbids that."""

Surroundings = Callable[[], AbstractContextManager[None]]


def after_import(name: str, fix: Callable[[Module], None]) -> None:
    """
    Calls `fix(module)` once module `name` has been executed: at once if that has happened already.
    """
    register_post_import_hook(fix, name)


def around_import(name: str, surroundings: Surroundings) -> None:
    """
    Executes module `name`, whenever it is imported, inside the context manager that `surroundings()` returns.

    Unlike a hook of `wrapt`, it stays registered when the import fails, so that an error raised here is raised
    again by the next attempt and cannot be swallowed by a first `try: import ...`.
    """
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    if _FINDER.surroundings.setdefault(name, surroundings) is not surroundings:
        raise ValueError(f"The import of '{name}' has surroundings already, and a module has one only: join the two.")


@contextmanager
def temporary_modules(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """
    Puts `modules` into `sys.modules`, and takes out these and no others at the end.
    """
    # Not `mock.patch.dict(sys.modules)`: that would also forget whatever else was imported in the meantime.
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module


class _SurroundingLoader(Loader):
    """
    The loader of a module, inside a context manager.
    """

    def __init__(self, loader: Any, surroundings: Surroundings) -> None:
        self._loader = loader
        self._surroundings = surroundings

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module must not see us: `pkgutil`, `inspect` and `runpy` ask its loader for things we do not have.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        with self._surroundings():
            self._loader.exec_module(module)


class _SurroundingFinder(MetaPathFinder):
    """
    Finds the modules that `around_import` was told about, by asking everybody else.
    """

    def __init__(self) -> None:
        self.surroundings: dict[str, Surroundings] = {}
        self._asking: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in self.surroundings or fullname in self._asking:
            return None
        self._asking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _SurroundingLoader(spec.loader, self.surroundings[fullname])
        return spec


_FINDER = _SurroundingFinder()
