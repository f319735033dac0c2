"""
Makes AllenNLP 2.10.1 and allennlp-models 2.10.1 work with current Python, torch, NumPy and transformers.

torch calls `install` at the end of `import torch` (entry point `torch.backends`, allennlp_today_hook.py), and AllenNLP
imports torch before anything that needs a fix, also in worker processes. `install` runs in every program in this
environment that imports torch, so it does nothing without AllenNLP, imports only the standard library, replaces nothing
before a module of AllenNLP is imported, and never raises. `ALLENNLP_TODAY_WITHOUT` lists fixes to switch off, with
commas.
"""

import importlib.util
import sys
import warnings

__all__ = ["install"]

_installed = False


def install() -> None:
    """Registers all fixes by importing them, once. Called by torch, and when this module is imported."""
    global _installed
    if _installed or importlib.util.find_spec("allennlp") is None:
        return
    _installed = True
    try:
        # `archives` imports `startup`.
        from allennlp_today import (  # noqa: F401
            archives,
            deferred_imports,
            errors,
            hugging_face,
            placeholders,
            third_party,
            training,
        )
        from allennlp_today.entry_points import entry_points
        from allennlp_today.import_hooks import FIXES, WITHOUT

        for entry in entry_points("allennlp_today.repairs"):
            entry.load()
        names = {fix.__name__ for fix in FIXES}
        if not names >= WITHOUT:
            raise ValueError(f"ALLENNLP_TODAY_WITHOUT: expected names among {sorted(names)}, got {sorted(WITHOUT)}")
    # An error here must not stop programs that only need torch.
    except Exception as error:
        try:
            warnings.warn(f"allennlp_today could not prepare AllenNLP for this torch: {error}", RuntimeWarning, 2)
        except RuntimeWarning as warning:  # With -W error.
            print(f"warning: {warning}", file=sys.stderr)


# With TORCH_DEVICE_BACKEND_AUTOLOAD=0, `import allennlp_today` before AllenNLP is enough.
install()
