"""
The former place of `allennlp_today`, for one release. Installations from before name it as an extension of torch, whose
import would otherwise fail after an update of the checkout.
"""

import warnings

__all__ = ["install"]


def install() -> None:
    """Does what `import allennlp_today` does, or warns that it is not installed."""
    try:
        import allennlp_today  # noqa: F401
    except ImportError:
        message = (
            "AllenNLP's repairs are now the package allennlp_today: run the two commands in docs/installing.md again"
        )
        warnings.warn(message, stacklevel=2)


install()
