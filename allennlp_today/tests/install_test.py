import sys
from pathlib import Path

import pytest
import torch  # noqa: F401

from allennlp_today.import_hooks import FIXES, GUARDS

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
sys.modules[{module!r}] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter({action!r}, RuntimeWarning)
    import torch
print(torch.ones(2).sum().item(), len(caught))
"""


class TestInstall:
    def test_nothing_is_changed_where_allennlp_is_not_installed(self, run_python):
        result, modules = run_python(NO_ALLENNLP).splitlines()
        assert result.split() == ["2.0", "0"]
        assert modules == "['allennlp_today', 'allennlp_today_hook']"

    @pytest.mark.parametrize(
        ("module", "action", "n_warnings"),
        [("allennlp_today", "always", "1"), ("allennlp_today.training", "error", "0")],
    )
    def test_fixes_that_cannot_be_registered_are_no_error_of_torch(self, run_python, module, action, n_warnings):
        """Without the first, as after a checkout was moved, only the hook is left."""
        assert run_python(BROKEN.format(module=module, action=action)).split() == ["2.0", n_warnings]

    def test_guards_cannot_be_switched_off(self, run_python, monkeypatch):
        monkeypatch.setenv("ALLENNLP_TODAY_WITHOUT", "defer_imports,load_archives_safely")
        code = "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n"
        code += " warnings.simplefilter('always')\n import allennlp_today\nprint(*[each.message for each in caught])"
        assert run_python(code).endswith("got ['load_archives_safely']; guards cannot be switched off\n")

    def test_it_loads_only_the_standard_library(self, run_python):
        code = "import sys\nbefore = set(sys.modules)\nimport allennlp_today\nprint(*set(sys.modules) - before)"
        loaded = {name.split(".")[0] for name in run_python(code).split()}
        # The second name of `__main__` comes from `multiprocessing`.
        assert loaded - {"__mp_main__", "allennlp_today", "elmo_tasks"} <= sys.stdlib_module_names


class TestFixes:
    @pytest.mark.parametrize(("kind", "declared"), [("guard", GUARDS), ("fix", FIXES)])
    def test_the_page_has_the_table(self, kind, declared):
        # Other packages may have their own.
        ours = [each for each in declared if each.__module__.startswith("allennlp_today.")]
        rows = [f"| {kind} | in | symptom without it |", "|---|---|---|"]
        for each in ours:
            symptom, cause, _ = " ".join(each.__doc__.split()).partition(" Cause: ")
            assert symptom.startswith("Symptom: ") and cause, each
            rows.append(
                f"| `{each.__name__}` | `{each.__module__.split('.')[-1]}` | {symptom.removeprefix('Symptom: ')} |"
            )
        assert len(ours) > 2, "torch has registered them"
        page = (Path(__file__).parents[1] / "REPAIRS.md").read_text(encoding="utf-8")
        assert "\n".join(rows) in page, "expected in REPAIRS.md:\n" + "\n".join(rows)
