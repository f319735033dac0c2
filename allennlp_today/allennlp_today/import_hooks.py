"""Hooks that run around and after the import of a module."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["FIXES", "GUARDS", "REPLACED", "WITHOUT", "Module"]
__all__ += ["after_import", "around_import", "guard", "replaces", "temporary_modules"]

# A type checker forbids replacing functions of a `ModuleType`.
Module = Any

FIXES: list[Callable[..., object]] = []
"""The docstring of each fix names the symptom and its cause."""

GUARDS: list[Callable[..., object]] = []
"""Like fixes, but they cannot be switched off."""

REPLACED: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
"""Functions of AllenNLP, each with ours, which takes it as its first argument."""

WITHOUT = set(filter(None, os.environ.get("ALLENNLP_TODAY_WITHOUT", "").split(",")))
"""Names of fixes that are switched off."""


def after_import(*modules: str) -> Callable[[Callable[[Module], None]], object]:
    """Decorates a fix that is called with each of the modules after its execution; fixes run in definition order."""
    return lambda fix: _declare(fix, _FINDER.after, modules)


def around_import(*modules: str) -> Callable[[Callable[[str], Iterator[None]]], Any]:
    """Decorates a generator function, to a context manager that takes a module's name and surrounds its execution."""
    return lambda fix: _declare(contextmanager(fix), _FINDER.around, modules)


def guard(*modules: str) -> Callable[[Callable[[Module], None]], Callable[[Module], None]]:
    """Decorates a function that is called with each of the modules after its execution, before others copy names."""

    def declare(function: Callable[[Module], None]) -> Callable[[Module], None]:
        if imported := [module for module in modules if module in sys.modules]:
            raise ImportError(f"expected to be imported before {imported[0]}: import torch or allennlp_today first")
        GUARDS.append(function)
        for module in modules:
            _FINDER.after.setdefault(module, []).append(function)
        return function

    return declare


def _declare(fix: Any, hooks: dict[str, list[Any]], modules: tuple[str, ...]) -> Any:
    FIXES.append(fix)
    for module in modules if fix.__name__ not in WITHOUT else ():
        hooks.setdefault(module, []).append(fix)
    return fix


def replaces(owner: Any, name: str) -> Callable[[Callable[..., Any]], object]:
    """Decorates the function that replaces `owner.name` and takes the original as its first argument."""
    original = getattr(owner, name)

    def decorate(function: Callable[..., Any]) -> None:
        REPLACED.append((original, function))
        # `wraps` keeps the original's signature, which AllenNLP's `FromParams` reads.
        setattr(owner, name, wraps(original)(lambda *args, **kwargs: function(original, *args, **kwargs)))

    return decorate


@contextmanager
def temporary_modules(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """Puts `modules` into `sys.modules`, and at the end what was there before."""
    # Not `mock.patch.dict(sys.modules)`: that would also forget everything else imported in the meantime.
    before = {name: sys.modules[name] for name in modules if name in sys.modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(before)


class _HookFinder(MetaPathFinder):
    """Finds the modules that have hooks by asking all other finders."""

    def __init__(self) -> None:
        self.around: dict[str, list[Callable[[str], AbstractContextManager[None]]]] = {}
        self.after: dict[str, list[Callable[[Module], None]]] = {}
        self._asking: set[str] = set()

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        has_hooks = fullname in self.around or fullname in self.after
        if not has_hooks or fullname in self._asking:
            return None
        self._asking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asking.discard(fullname)
        if spec is not None and spec.loader is not None:
            self._hook(spec.loader)
        return spec

    def _hook(self, loader: Any) -> None:
        # Not a loader around it: `pkgutil`, `inspect` and `runpy` call methods of the module's own.
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with ExitStack() as surroundings:
                for around in self.around.get(module.__name__, []):
                    surroundings.enter_context(around(module.__name__))
                execute(module)
            for fix in self.after.get(module.__name__, []):
                fix(module)

        loader.exec_module = exec_module


_FINDER = _HookFinder()
sys.meta_path.insert(0, _FINDER)
