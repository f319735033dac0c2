"""
What torch imports. This module is always in site-packages, so a checkout of `allennlp_today` that was installed as
editable and then moved leaves a warning; torch itself would end with an error.
"""

import sys
import warnings

__all__ = ["install"]


def install() -> None:
    """Calls `allennlp_today.install`. Never raises, because an error here would stop programs that only need torch."""
    try:
        from allennlp_today import install
    except ImportError as error:
        _warn(f"allennlp_today is installed but cannot be imported, so AllenNLP is not repaired: {error}")
    else:
        install()


def _warn(message: str) -> None:
    try:
        warnings.warn(message, RuntimeWarning, 2)
    except RuntimeWarning as warning:  # With -W error.
        print(f"warning: {warning}", file=sys.stderr)
