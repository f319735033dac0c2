"""Errors for files. This module imports AllenNLP, so others import it only where they are raised."""

from allennlp.common.checks import ConfigurationError

__all__ = ["ArchiveError", "ConfigFileError", "VocabularyFileError"]


class ArchiveError(ConfigurationError, ValueError):
    """What is wrong with the config of an archive. Programs that know nothing of AllenNLP catch the ValueError."""


class ConfigFileError(ConfigurationError, RuntimeError):
    """AllenNLP's `Params.from_file` raises the RuntimeError of Jsonnet."""


class VocabularyFileError(ConfigurationError, AssertionError, ValueError):
    """AllenNLP's `Vocabulary.set_from_file` asserts that there is an OOV token."""
