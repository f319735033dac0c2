"""The error for a config file. This module imports AllenNLP, so `compat` imports it only where it is raised."""

from allennlp.common.checks import ConfigurationError

__all__ = ["ConfigFileError"]


class ConfigFileError(ConfigurationError, RuntimeError):
    """AllenNLP's `Params.from_file` raises the RuntimeError of Jsonnet."""
