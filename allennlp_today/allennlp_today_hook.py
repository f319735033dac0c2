"""
The module that torch imports at the end of `import torch`. It is in site-packages also if
`allennlp_today` is installed as editable, so a checkout that is moved afterwards leaves a warning.
Without the module, `import torch` would end with an error.
"""

import importlib.util
import sys
import warnings
from types import ModuleType

__all__ = ["install"]


def install() -> None:
    """
    Calls `allennlp_today.install`. Never raises, because an error here would stop programs that
    only need torch.
    """
    try:
        from allennlp_today import install

        install()
    except Exception as error:
        if importlib.util.find_spec("allennlp") is None:
            return
        message = (
            f"allennlp_today is installed but does not work, so AllenNLP is not repaired: {error!r}"
        )
        sys.modules["allennlp.models.archival"] = _Closed(message)
        try:
            warnings.warn(message, RuntimeWarning, 2)
        except RuntimeWarning:  # With -W error.
            print(f"warning: {message}", file=sys.stderr)


class _Closed(ModuleType):
    """
    Instead of AllenNLP's module for archives, which would read untrusted ones without the guards.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("allennlp.models.archival")
        self._reason = reason

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # Read by the import system about this module itself.
            raise AttributeError(name)
        raise ImportError(f"no archive is opened: {self._reason}")
