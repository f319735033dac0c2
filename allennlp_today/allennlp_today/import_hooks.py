"""
Hooks that run around and after the import of a module, and the record of what they replace in other
packages, which `python -m allennlp_today` prints.
"""

import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["REPAIRS", "REPLACED", "WITHOUT", "Module", "Repair", "Replacement", "after_import"]
__all__ += ["applied_now", "around_import", "guard", "replace", "replaces", "temporary_modules"]

# A type checker forbids replacing functions of a `ModuleType`.
Module = Any

WITHOUT = set(filter(None, os.environ.get("ALLENNLP_TODAY_WITHOUT", "").split(",")))
"""Names of fixes that are switched off."""


@dataclass(frozen=True)
class Repair:
    """A function that changes other packages. Its docstring names the symptom and the cause."""

    function: Callable[..., object]
    modules: tuple[str, ...]
    """The function is called after their import, or surrounds it."""
    is_guard: bool = False
    """Guards cannot be switched off."""
    is_around: bool = False
    """Whether it surrounds the import, and changes what the module finds."""

    @property
    def name(self) -> str:
        return self.function.__name__


@dataclass(frozen=True)
class Replacement:
    """An attribute of a module or class that has been replaced."""

    attribute: str
    """Its full name, such as `allennlp.models.archival.load_archive`."""
    repair: str
    """The name of the repair."""
    original: Any
    replacement: Any
    """For a function, the one that takes the original as its first argument."""


REPAIRS: list[Repair] = []
REPLACED: list[Replacement] = []

# The repairs that are running, the innermost last: one may import a module that has its own.
_running: list[Repair] = []


def after_import(*modules: str) -> Callable[[Callable[[Module], None]], object]:
    """
    Decorates a fix, which is called with each of the modules after it has been executed. The fixes
    of a module run in the order of their definition, so a later one wraps an earlier one.
    """

    def declare(fix: Callable[[Module], None]) -> Callable[[Module], None]:
        repair = Repair(fix, modules)
        REPAIRS.append(repair)
        if repair.name not in WITHOUT:
            _FINDER.add_after(repair)
        return fix

    return declare


def around_import(*modules: str) -> Callable[[Callable[[str], Iterator[None]]], Any]:
    """
    Turns a generator function into a context manager that takes the name of a module and surrounds
    its execution.
    """

    def declare(fix: Callable[[str], Iterator[None]]) -> Any:
        repair = Repair(contextmanager(fix), modules, is_around=True)
        REPAIRS.append(repair)
        if repair.name not in WITHOUT:
            _FINDER.add_around(repair)
        return repair.function

    return declare


def guard(*modules: str) -> Callable[[Callable[[Module], None]], Callable[[Module], None]]:
    """
    Decorates a guard, which is called with each of the modules after it has been executed, and
    before other modules copy names from it.
    """

    def declare(function: Callable[[Module], None]) -> Callable[[Module], None]:
        if imported := [module for module in modules if module in sys.modules]:
            hint = "import torch or allennlp_today first"
            raise ImportError(
                f"expected allennlp_today to be imported before {imported[0]}: {hint}"
            )
        repair = Repair(function, modules, is_guard=True)
        REPAIRS.append(repair)
        _FINDER.add_after(repair)
        return function

    return declare


def applied_now(function: Callable[[], None]) -> Callable[[], None]:
    """
    Decorates a function without arguments, and calls it. It changes modules that are already
    imported, as a plugin must.
    """
    repair = Repair(function, ())
    REPAIRS.append(repair)
    with _running_as(repair):
        function()
    return function


def replaces(owner: Any, name: str) -> Callable[[Callable[..., Any]], object]:
    """
    Decorates the function that replaces `owner.name` and takes the original as its first argument.
    """
    static = inspect.getattr_static(owner, name)
    is_classmethod = isinstance(static, classmethod)
    original = static.__func__ if is_classmethod else getattr(owner, name)

    def decorate(function: Callable[..., Any]) -> None:
        # `wraps` keeps the original's signature, which AllenNLP's `FromParams` reads.
        @wraps(original)
        def replacement(*args: Any, **kwargs: Any) -> Any:
            return function(original, *args, **kwargs)

        setattr(owner, name, classmethod(replacement) if is_classmethod else replacement)
        _record(owner, name, original, function)

    return decorate


def replace(owner: Any, name: str, value: Any) -> None:
    """Replaces `owner.name` by a value, or adds it."""
    original = inspect.getattr_static(owner, name, None)
    setattr(owner, name, value)
    _record(owner, name, original, value)


def _record(owner: Any, name: str, original: Any, replacement: Any) -> None:
    attribute = f"{owner.__name__}.{name}"
    if isinstance(owner, type):
        attribute = f"{owner.__module__}.{owner.__qualname__}.{name}"
    repair = _running[-1].name if _running else ""
    REPLACED.append(Replacement(attribute, repair, original, replacement))


@contextmanager
def _running_as(repair: Repair) -> Iterator[None]:
    _running.append(repair)
    try:
        yield
    finally:
        _running.pop()


@contextmanager
def temporary_modules(modules: Mapping[str, ModuleType]) -> Iterator[None]:
    """
    A block in which `sys.modules` has these modules. At its end, what was there before is put back.
    """
    # Not `mock.patch.dict(sys.modules)`: that would also forget everything else imported in the
    # meantime.
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
        self._around: dict[str, list[Callable[[str], AbstractContextManager[None]]]] = {}
        self._after: dict[str, list[Repair]] = {}
        self._being_found: set[str] = set()

    def add_around(self, repair: Repair) -> None:
        for module in repair.modules:
            context: Any = repair.function
            self._around.setdefault(module, []).append(context)

    def add_after(self, repair: Repair) -> None:
        for module in repair.modules:
            self._after.setdefault(module, []).append(repair)

    def find_spec(
        self,
        fullname: str,
        path: Any = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        has_hooks = fullname in self._around or fullname in self._after
        if not has_hooks or fullname in self._being_found:
            return None
        self._being_found.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._being_found.discard(fullname)
        if spec is not None and spec.loader is not None:
            self._hook(spec.loader)
        return spec

    def _hook(self, loader: Any) -> None:
        # The loader is changed and not wrapped: `pkgutil`, `inspect` and `runpy` call its methods.
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            with ExitStack() as surroundings:
                for around in self._around.get(module.__name__, []):
                    surroundings.enter_context(around(module.__name__))
                execute(module)
            for repair in self._after.get(module.__name__, []):
                with _running_as(repair):
                    repair.function(module)

        loader.exec_module = exec_module


_FINDER = _HookFinder()
sys.meta_path.insert(0, _FINDER)
