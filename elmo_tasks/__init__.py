"""
Deep contextualized word representations (Peters et al. 2018) as an AllenNLP plugin.

Importing this package costs nothing: torch and AllenNLP are imported by the modules that need them.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
