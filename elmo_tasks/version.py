"""The version of this package, and the address of its files."""

__all__ = ["RELEASE", "__version__"]

__version__ = "0.1.0"
RELEASE = ""
"""The address of the files of this version's release, which the release workflow writes here."""
