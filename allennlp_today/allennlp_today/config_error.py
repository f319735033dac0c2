"""
The error for files. This module imports AllenNLP, so others import it only where they raise it.
"""

from allennlp.common.checks import ConfigurationError

__all__ = ["FileContentError"]


class FileContentError(ConfigurationError, ValueError, RuntimeError, AssertionError):
    """
    What is wrong with a file that AllenNLP has written. Programs that do not import AllenNLP catch
    the ValueError. Its `Params.from_file` raises a RuntimeError, and its `Vocabulary.set_from_file`
    an AssertionError.
    """
