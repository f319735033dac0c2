"""
`python -m allennlp_today` prints what is replaced in other packages, as the tables of REPAIRS.md.
"""

import importlib
from collections import defaultdict
from collections.abc import Iterator

import torch  # noqa: F401

from allennlp_today.import_hooks import REPAIRS, REPLACED, Repair
from allennlp_today.plugins import import_installed_plugins

__all__ = ["tables_of_repairs"]


def tables_of_repairs() -> str:
    """
    A table of the guards, one of the fixes, and one for each other package that changes something,
    in Markdown. Each row has a function, the attributes that it replaces, and the symptom without
    it.
    """
    _apply_all()
    tables = ["\n".join(_rows("guard", [repair for repair in REPAIRS if repair.is_guard]))]
    by_package: dict[str, list[Repair]] = defaultdict(list)
    for repair in REPAIRS:
        if not repair.is_guard:
            by_package[repair.function.__module__.partition(".")[0]].append(repair)
    for package, repairs in sorted(by_package.items()):
        tables.append("\n".join(_rows(f"fix of {package}", repairs)))
    return "\n\n".join(tables)


def _apply_all() -> None:
    """Imports everything that a repair changes. It applies to installed packages only."""
    import_installed_plugins()
    for repair in list(REPAIRS):
        for module in repair.modules:
            try:
                importlib.import_module(module)
            except ImportError:
                continue


def _rows(kind: str, repairs: list[Repair]) -> Iterator[str]:
    yield f"| {kind} | in | replaces | symptom without it |"
    yield "|---|---|---|---|"
    for repair in repairs:
        _, _, module = repair.function.__module__.partition(".")
        symptom, _, _ = " ".join((repair.function.__doc__ or "").split()).partition(" Cause: ")
        cells = [f"`{repair.name}`", f"`{module}`", _replaced_by(repair)]
        cells.append(symptom.removeprefix("Symptom: "))
        yield f"| {' | '.join(cells)} |"


def _replaced_by(repair: Repair) -> str:
    if repair.is_around:
        modules = [f"`{module}`" for module in repair.modules[:3]]
        more = f" and {len(repair.modules) - 3} more" if len(repair.modules) > 3 else ""
        return f"what {', '.join(modules)}{more} import"
    attributes = {change.attribute for change in REPLACED if change.repair == repair.name}
    return ", ".join(f"`{attribute}`" for attribute in sorted(attributes)) or "a setting"


if __name__ == "__main__":
    print(tables_of_repairs())
