import sys
from importlib import import_module

import pytest

from elmo_tasks.compat import MODULES, NAMES

OLD = {old: f"{new.split()[0]}.{import_module(new.split()[0]).__all__[0]}" for old, new in MODULES.items()}
OLD = {f"{old}.{new.rpartition('.')[2]}": new for old, new in OLD.items()} | {
    "elmo_tasks.bilm.lstm.recurrence.RecurrenceFunction": NAMES["RecurrenceFunction"],
    "elmo_tasks.modules.PretrainedBilm": NAMES["PretrainedBilm"],
    "elmo_tasks.modules.TransformerIndexer": NAMES["TransformerIndexer"],
    "elmo_tasks.modules.contextual.pretrained_bilm.PretrainedBilm": NAMES["PretrainedBilm"],
    "elmo_tasks.modules.recurrent.recurrence.Recurrence": NAMES["Recurrence"],
    "elmo_tasks.training.SpanF1": "elmo_tasks.metrics.SpanF1",
}


def found(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_is_the_new_one_and_warns(old, monkeypatch):
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.warns(DeprecationWarning):
        assert found(old) is found(OLD[old])
