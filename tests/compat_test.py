import sys
from importlib import import_module

import pytest

from elmo_tasks.compat import MODULES, NAMES

RENAMED = {
    "bilm.lstm.recurrence.RecurrenceFunction": NAMES["RecurrenceFunction"],
    "modules.PretrainedBilm": NAMES["PretrainedBilm"],
    "modules.TransformerIndexer": NAMES["TransformerIndexer"],
    "modules.contextual.pretrained_bilm.PretrainedBilm": NAMES["PretrainedBilm"],
    "modules.recurrent.recurrence.Recurrence": NAMES["Recurrence"],
    "training.SpanF1": "metrics.SpanF1",
}


def names_in(module: str) -> list[str]:
    return [name for name in import_module(f"elmo_tasks.{module}").__all__ if not name.startswith("_")]


OLD = {f"{old}.{name}": f"{new}.{name}" for old, (new, *_) in MODULES.items() for name in names_in(new)[:1]} | RENAMED


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_is_the_new_one_and_warns(old, monkeypatch):
    for name in [name for name in sys.modules if name.removeprefix("elmo_tasks.") in MODULES]:
        monkeypatch.delitem(sys.modules, name)
    (old_module, old_name), (module, name) = (f"elmo_tasks.{path}".rsplit(".", 1) for path in (old, OLD[old]))
    with pytest.warns(DeprecationWarning):
        found = getattr(import_module(old_module), old_name)
    assert found is getattr(import_module(module), name)
