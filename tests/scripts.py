"""The scripts that make the small data, which are no part of the package."""

import importlib.util
from types import ModuleType

from tests.paths import FIXTURES


def load_script(name: str) -> ModuleType:
    """The module that a script of `fixtures` is."""
    spec = importlib.util.spec_from_file_location(name, FIXTURES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
