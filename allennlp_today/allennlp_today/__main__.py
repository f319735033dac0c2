"""
`python -m allennlp_today` prints what is replaced in other packages, as the tables of REPAIRS.md.
"""

import importlib
from collections import defaultdict

# It registers the repairs.
import torch  # noqa: F401

from allennlp_today.import_hooks import REPAIRS, REPLACED, Repair
from allennlp_today.plugins import import_installed_plugins

__all__ = ["tables_of_repairs"]

# How many modules are named for a repair that surrounds imports.
_MAX_MODULES = 3


def tables_of_repairs() -> str:
    """
    A table of the guards, one of the fixes, and one for each other package that changes something,
    in Markdown. Each row has a function, the attributes that it replaces, and the symptom without
    it.
    """
    _apply_all()
    guards: list[Repair] = []
    fixes_of: dict[str, list[Repair]] = defaultdict(list)
    for repair in REPAIRS:
        if repair.is_guard:
            guards.append(repair)
        else:
            package = repair.function.__module__.partition(".")[0]
            fixes_of[package].append(repair)
    tables = [_table("guard", guards)]
    for package, fixes in sorted(fixes_of.items()):
        tables.append(_table(f"fix of {package}", fixes))
    return "\n\n".join(tables)


def _apply_all() -> None:
    """
    Imports all modules that repairs change, so that the repairs are applied. Modules that are not
    installed are left out.
    """
    import_installed_plugins()
    for repair in list(REPAIRS):
        for module in repair.modules:
            try:
                importlib.import_module(module)
            except ImportError:
                continue


def _table(title: str, repairs: list[Repair]) -> str:
    lines = [f"| {title} | in | replaces | symptom without it |", "|---|---|---|---|"]
    for repair in repairs:
        _, _, module = repair.function.__module__.partition(".")
        cells = [f"`{repair.name}`", f"`{module}`", _replaced_by(repair), _symptom_of(repair)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _symptom_of(repair: Repair) -> str:
    """What the docstring of a repair says before the cause, in one line."""
    docstring = " ".join((repair.function.__doc__ or "").split())
    symptom, _, _ = docstring.partition(" Cause: ")
    return symptom.removeprefix("Symptom: ")


def _replaced_by(repair: Repair) -> str:
    if repair.is_around:
        text = ", ".join(f"`{module}`" for module in repair.modules[:_MAX_MODULES])
        n_more = len(repair.modules) - _MAX_MODULES
        if n_more > 0:
            text += f" and {n_more} more"
        return f"what {text} {'imports' if len(repair.modules) == 1 else 'import'}"
    attributes = {change.attribute for change in REPLACED if change.repair == repair.name}
    return ", ".join(f"`{attribute}`" for attribute in sorted(attributes)) or "a setting"


if __name__ == "__main__":
    print(tables_of_repairs())
