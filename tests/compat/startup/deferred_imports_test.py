"""Tests of elmo_tasks.compat.startup.deferred_imports."""

import decimal
import importlib
import sys

import pytest
import torch
from allennlp.fairness.fairness_metrics import Independence
from allennlp.modules.transformer.activation_layer import ActivationLayer
from allennlp.training.metrics import Auc, SpearmanCorrelation

from elmo_tasks.compat.startup.deferred_imports import defer
from tests.compat.packages import write_torch


@pytest.fixture
def deferred():
    """A function that takes names from a module that is not imported until they are used."""

    def take(module, *names):
        with defer(module)():
            stand_in = importlib.import_module(module)
            return [getattr(stand_in, name) for name in names]

    return take


class TestDefer:
    def test_a_start_imports_none_of_the_heavy_modules(self, start, run_python):
        """
        Oracle: `sys.modules` after all plugins have been imported, and after what AllenNLP needs of torch alone: in
        torch 2.6 it imports sympy.
        """
        heavy = {
            "nltk",
            "scipy.optimize",
            "scipy.stats",
            "sklearn",
            "sympy",
            "torch._dynamo",
            "torch.distributed.tensor",
        }
        of_torch = set(run_python("import sys, torch.utils.checkpoint\nprint(*sys.modules)").split())
        assert heavy & set(start["modules"]) <= of_torch

    def test_programs_without_allennlp_get_the_modules_themselves(self, run_python, tmp_path):
        """Oracle: the type of what a module of the table takes from another; the packages are stand-ins."""
        write_torch(tmp_path)
        contents = {
            "transformers/__init__.py": "",
            "transformers/data/__init__.py": "",
            "transformers/data/metrics.py": "from sklearn.metrics import f1_score",
            "sklearn/__init__.py": "",
            "sklearn/metrics.py": "def f1_score(): pass",
        }
        for name, content in contents.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        code = "import torch{}\nfrom transformers.data.metrics import f1_score\nprint(type(f1_score).__name__)"
        assert run_python(code.format(""), path=tmp_path) == "function\n"
        with_allennlp = code.format(", sys\nsys.modules['allennlp'] = sys")
        assert run_python(with_allennlp, path=tmp_path) == "_Deferred\n"

    def test_the_module_is_imported_at_the_first_use(self, deferred, monkeypatch):
        """Oracle: `sys.modules`."""
        monkeypatch.delitem(sys.modules, "colorsys", raising=False)
        (convert,) = deferred("colorsys", "rgb_to_hsv")
        assert "colorsys" not in sys.modules
        assert convert(1.0, 0.0, 0.0) == (0.0, 1.0, 1.0)
        assert "colorsys" in sys.modules

    def test_a_deferred_name_can_be_called_indexed_read_checked_against_and_derived_from(self, deferred):
        """Oracle: the names themselves."""
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

    def test_a_submodule_that_has_not_been_imported_is_found(self, deferred, monkeypatch):
        """Oracle: the module; `import sklearn` alone need not make `sklearn.svm` known."""
        monkeypatch.delitem(sys.modules, "xml.dom.minidom", raising=False)
        import xml.dom

        monkeypatch.delattr(xml.dom, "minidom", raising=False)
        (minidom,) = deferred("xml.dom", "minidom")
        assert minidom.parseString("<a/>").documentElement.tagName == "a"


class TestModulesWithDeferredImports:
    def test_the_area_under_the_curve(self):
        """Oracle: three of the four pairs are in order."""
        metric = Auc()
        metric(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        assert metric.get_metric() == pytest.approx(0.75)

    def test_the_rank_correlation(self):
        """Oracle: 1 - 6 * sum(d^2) / (n * (n^2 - 1)) with d = (0, 1, 1)."""
        metric = SpearmanCorrelation()
        metric(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 3.0, 2.0]))
        assert metric.get_metric() == pytest.approx(0.5)

    def test_the_distance_of_distributions(self):
        """Oracle: by hand: one group gets label 0, the other label 1, and both together half of each."""
        metric = Independence(num_classes=2, num_protected_variable_labels=2, dist_metric="wasserstein")
        metric(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1]))
        assert metric.get_metric()[0] == pytest.approx(0.5)

    def test_an_activation_of_transformers(self):
        """Oracle: torch."""
        layer = ActivationLayer(2, 2, "gelu")
        hidden = torch.tensor([[1.0, -1.0]])
        torch.testing.assert_close(layer(hidden), torch.nn.functional.gelu(layer.dense(hidden)))

    def test_a_tree_of_nltk(self, tmp_path):
        """Oracle: by hand."""
        from allennlp_models.classification import StanfordSentimentTreeBankDatasetReader

        (tmp_path / "trees.txt").write_text("(3 (2 A) (4 (3 good) (2 dog)))\n")
        (instance,) = StanfordSentimentTreeBankDatasetReader().read(tmp_path / "trees.txt")
        assert [token.text for token in instance["tokens"]] == ["A", "good", "dog"]

    def test_the_assignment_of_clusters(self):
        """Oracle: two clusters that are equal up to their order score 1."""
        from allennlp_models.coref.metrics.conll_coref_scores import Scorer

        gold = [((0, 0), (1, 1)), ((2, 2), (3, 3))]
        precision_numerator, precision_denominator, *_ = Scorer.ceafe(list(reversed(gold)), gold)
        assert precision_numerator / precision_denominator == pytest.approx(1.0)

    def test_a_bert_of_transformers(self):
        """Oracle: the class, built from a config."""
        from allennlp.data import Vocabulary
        from allennlp_models.structured_prediction.models.srl_bert import SrlBert
        from transformers import BertModel

        config = dict(hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4, vocab_size=9)
        vocabulary = Vocabulary()
        vocabulary.add_token_to_namespace("O", "labels")
        model = SrlBert(vocabulary, {"hidden_dropout_prob": 0.0, **config}, ignore_span_metric=True)
        assert isinstance(model.bert_model, BertModel)
