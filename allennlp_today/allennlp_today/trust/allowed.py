"""
The lists of what an archive that is not trusted may name: `harmless.toml` for AllenNLP, and for
plugins and other packages their dictionary `HARMLESS`, with the same tables.
"""

import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from allennlp.common import Registrable

from allennlp_today.plugins import entry_points

__all__ = ["Table", "Tables", "harmless_tables", "harmless_toml", "machine_arguments"]
__all__ += ["without_arguments"]

Table = Mapping[str, Any]
Tables = Mapping[str, Sequence[Table]]

# The packages whose classes were read for `harmless.toml`.
_REVIEWED_PACKAGES = ("allennlp", "allennlp_models", "torch", "transformers")


@cache
def harmless_toml() -> Table:
    """The tables of `harmless.toml`."""
    file = Path(__file__).with_name("harmless.toml")
    return tomllib.loads(file.read_text("utf-8"))


def harmless_tables() -> dict[str, list[Table]]:
    """
    The tables of harmless classes by package: first those that plugins and other packages or
    modules with registered classes declare, and then AllenNLP's. A class of one of these packages
    is harmless only if a table lists it.
    """
    tables: dict[str, list[Table]] = defaultdict(list)
    for module in sorted(_modules_with_classes() & sys.modules.keys()):
        table = getattr(sys.modules[module], "HARMLESS", None)
        if table:
            tables[module.partition(".")[0]].append(table)
    for package in _REVIEWED_PACKAGES:
        tables[package].append(harmless_toml())
    return dict(tables)


def _modules_with_classes() -> set[str]:
    """The names of plugins, and of modules and packages with registered classes."""
    modules = {entry.load().__name__ for entry in entry_points("allennlp.plugins")}
    for classes in Registrable._registry.values():
        for cls, _ in classes.values():
            modules.add(cls.__module__)
            modules.add(cls.__module__.partition(".")[0])
    return modules


def machine_arguments(tables: Tables) -> set[str]:
    """The names of arguments that describe a machine, such as `cuda_device`."""
    names: set[str] = set()
    for declared in tables.values():
        for table in declared:
            names.update(table.get("machine", ()))
    return names


def without_arguments(value: Any, names: set[str]) -> Any:
    """A copy of a part of a config without the arguments of these names, at any depth."""
    if isinstance(value, Mapping):
        kept = {}
        for key, item in value.items():
            if key not in names:
                kept[key] = without_arguments(item, names)
        return kept
    if isinstance(value, list):
        return [without_arguments(item, names) for item in value]
    return value
