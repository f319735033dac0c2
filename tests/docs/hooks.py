"""The module `docs/hooks.py`, which no package holds."""

from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

from tests.docs.blocks import DOCS


def _module() -> ModuleType:
    spec = spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hooks = _module()
