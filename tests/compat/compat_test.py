"""Tests of elmo_tasks.compat itself."""

import sys

import pytest

from elmo_tasks import compat

NO_ALLENNLP = """
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"allennlp", "allennlp_models", "spacy", "transformers", "nltk"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NotInstalled())
import torch
import elmo_tasks.compat
print(elmo_tasks.compat._installed, torch.ones(2).sum().item())
"""


class TestInstall:
    def test_torch_is_imported_where_allennlp_is_not_installed(self, run_python):
        """Oracle: an interpreter in which none of it can be found; that torch called `install` there."""
        assert run_python(NO_ALLENNLP).split() == ["True", "2.0"]

    def test_installing_twice_does_nothing(self, monkeypatch):
        """Oracle: no hook is registered the second time."""
        import torch  # noqa: F401

        monkeypatch.setattr(compat, "after_import", lambda *args: pytest.fail("registered again"))
        compat.install()

    def test_installing_too_late_is_an_error(self, monkeypatch):
        """Oracle: the message, which names the rule and the remedy."""
        import allennlp  # noqa: F401

        assert "allennlp.version" in sys.modules
        monkeypatch.setattr(compat, "_installed", False)
        with pytest.raises(RuntimeError, match=r"before AllenNLP is imported.*Remedy"):
            compat.install()

    def test_every_fix_says_what_it_is_for(self):
        """Oracle: the words "Symptom" and "Cause" in its docstring."""
        fixes = {fix for fixes in compat.AFTER_IMPORT.values() for fix in fixes}
        surroundings = {getattr(fix, "func", fix) for fix in compat.AROUND_IMPORT.values()} - {compat.defer("x").func}
        for fix in fixes | surroundings | {compat.defer}:
            assert "Symptom" in fix.__doc__, fix
            assert "ause" in fix.__doc__, fix

    def test_no_module_is_in_two_tables_of_surroundings(self):
        """Oracle: the lengths; the tables are joined into one dictionary."""
        others = [name for name, fix in compat.AROUND_IMPORT.items() if name not in compat.DEFERRED_IMPORTS]
        assert len(others) == 13
