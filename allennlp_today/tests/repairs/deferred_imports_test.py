import decimal
import importlib
import sys

import pytest
import torch
from allennlp.fairness.fairness_metrics import Independence
from allennlp.training.metrics import Auc

from allennlp_today.repairs.deferred_imports import DEFERRED_IMPORTS, defer_imports


@pytest.fixture
def deferred(monkeypatch):
    """A function that takes names from a module, which is only imported when a name is used."""

    def take(module, *names):
        monkeypatch.setitem(DEFERRED_IMPORTS, "tests", (module,))
        with defer_imports("tests"):
            stand_in = importlib.import_module(module)
            return [getattr(stand_in, name) for name in names]

    return take


class TestDeferImports:
    def test_a_start_imports_none_of_the_heavy_modules(self, start):
        heavy = {
            "scipy.optimize",
            "scipy.stats",
            "sklearn",
            "torch._dynamo",
            "torch.distributed.tensor",
        }
        assert not heavy & set(start["modules"])

    def test_the_module_is_imported_at_the_first_use(self, deferred, monkeypatch):
        monkeypatch.delitem(sys.modules, "colorsys", raising=False)
        (convert,) = deferred("colorsys", "rgb_to_hsv")
        assert "colorsys" not in sys.modules
        assert convert(1.0, 0.0, 0.0) == (0.0, 1.0, 1.0)
        assert "colorsys" in sys.modules

    def test_a_deferred_name_can_be_called_indexed_read_checked_against_and_derived_from(
        self, deferred
    ):
        Decimal, getcontext = deferred("decimal", "Decimal", "getcontext")
        assert Decimal("1.5") == decimal.Decimal("1.5")
        assert Decimal.from_float(0.5) == decimal.Decimal("0.5")
        assert isinstance(decimal.Decimal(1), Decimal) and not isinstance(1, Decimal)

        class Derived(Decimal):
            pass

        assert Derived.__mro__[1] is decimal.Decimal
        assert getcontext().prec == decimal.getcontext().prec
        (table,) = deferred("html.entities", "name2codepoint")
        assert table["amp"] == 38


class TestModulesWithDeferredImports:
    def test_the_area_under_the_curve(self):
        metric = Auc()
        metric(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        assert metric.get_metric() == pytest.approx(0.75)

    def test_the_distance_of_distributions(self):
        metric = Independence(
            num_classes=2, num_protected_variable_labels=2, dist_metric="wasserstein"
        )
        metric(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1]))
        assert metric.get_metric()[0] == pytest.approx(0.5)
