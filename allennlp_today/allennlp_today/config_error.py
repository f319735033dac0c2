"""
The error for damaged files. This module imports AllenNLP, so others import it only where they raise
it.
"""

from allennlp.common.checks import ConfigurationError

__all__ = ["FileContentError"]


class FileContentError(ConfigurationError, ValueError, RuntimeError, AssertionError):
    """
    An error in a file that AllenNLP has written. Each base class is for somebody who catches it: a
    `ValueError` for programs that do not import AllenNLP, a `RuntimeError` because AllenNLP's
    `Params.from_file` raises one, and an `AssertionError` because its
    `Vocabulary.set_from_file` does.
    """
