import sys
from pathlib import Path

import pytest
import torch  # noqa: F401

from allennlp_today.import_hooks import FIXES

NO_ALLENNLP = """
import sys
from importlib.machinery import PathFinder
class WithoutAllennlp(PathFinder):
    @classmethod
    def find_spec(cls, name, *args):
        missing = {"allennlp", "allennlp_models", "spacy", "transformers", "nltk"}
        return None if name.split(".")[0] in missing else super().find_spec(name, *args)
sys.meta_path[sys.meta_path.index(PathFinder)] = WithoutAllennlp
finders = len(sys.meta_path)
import torch
print(torch.ones(2).sum().item(), len(sys.meta_path) - finders)
print(sorted(name for name in sys.modules if name.startswith(("allennlp_today", "elmo_tasks"))))
"""


BROKEN = """
import sys, warnings
sys.modules["allennlp_today.training"] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter({action!r}, RuntimeWarning)
    import allennlp_today
print(len(caught))
"""


class TestInstall:
    def test_nothing_is_changed_where_allennlp_is_not_installed(self, run_python):
        result, modules = run_python(NO_ALLENNLP).splitlines()
        assert result.split() == ["2.0", "0"]
        assert modules == "['allennlp_today', 'allennlp_today_hook']"

    @pytest.mark.parametrize(("action", "n_warnings"), [("always", "1"), ("error", "0")])
    def test_fixes_that_cannot_be_registered_are_no_error_of_torch(self, run_python, action, n_warnings):
        """At its end, torch calls what this import calls."""
        assert run_python(BROKEN.format(action=action)).split() == [n_warnings]

    def test_it_loads_only_the_standard_library(self, run_python):
        code = "import sys\nbefore = set(sys.modules)\nimport allennlp_today\nprint(*set(sys.modules) - before)"
        loaded = {name.split(".")[0] for name in run_python(code).split()}
        # The second name of `__main__` comes from `multiprocessing`.
        assert loaded - {"__mp_main__", "allennlp_today", "elmo_tasks"} <= sys.stdlib_module_names


class TestFixes:
    def test_the_page_has_the_table(self):
        # Other packages may have their own.
        fixes = [fix for fix in FIXES if fix.__module__.startswith("allennlp_today.")]
        rows = ["| fix | in | symptom without it |", "|---|---|---|"]
        for fix in fixes:
            symptom, cause, _ = " ".join(fix.__doc__.split()).partition(" Cause: ")
            assert symptom.startswith("Symptom: ") and cause, fix
            rows.append(
                f"| `{fix.__name__}` | `{fix.__module__.split('.')[-1]}` | {symptom.removeprefix('Symptom: ')} |"
            )
        assert len(fixes) > 10, "torch has registered them"
        page = (Path(__file__).parents[1] / "REPAIRS.md").read_text(encoding="utf-8")
        assert "\n".join(rows) in page, "expected in REPAIRS.md:\n" + "\n".join(rows)
