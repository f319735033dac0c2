"""Entry points of installed packages: `allennlp.plugins` are plugins, `allennlp_today.repairs` repairs."""

from importlib import metadata

__all__ = ["entry_points"]


def entry_points(group: str) -> list[metadata.EntryPoint]:
    """The entry points of a group, sorted by name."""
    # An editable installation in a folder of the path is found twice.
    return sorted(set(metadata.entry_points(group=group)), key=lambda entry: (entry.name, entry.value))
