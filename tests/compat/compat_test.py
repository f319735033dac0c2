import pytest
import torch  # noqa: F401

from elmo_tasks.compat.import_hooks import FIXES
from tests.paths import CHECKOUT

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
print(sorted(name for name in sys.modules if name.startswith("elmo_tasks.")))
"""


BROKEN = """
import sys, warnings
sys.modules["elmo_tasks.compat.training"] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter({action!r}, RuntimeWarning)
    import elmo_tasks.compat
print(len(caught))
"""


class TestInstall:
    def test_nothing_is_changed_where_allennlp_is_not_installed(self, run_python):
        result, modules = run_python(NO_ALLENNLP).splitlines()
        assert result.split() == ["2.0", "0"]
        assert modules == "['elmo_tasks.compat', 'elmo_tasks.version']"

    @pytest.mark.parametrize(("action", "n_warnings"), [("always", "1"), ("error", "0")])
    def test_fixes_that_cannot_be_registered_are_no_error_of_torch(self, run_python, action, n_warnings):
        """At its end, torch calls what this import calls."""
        assert run_python(BROKEN.format(action=action)).split() == [n_warnings]


class TestFixes:
    def test_the_page_of_compat_has_the_table(self):
        rows = ["| fix | in | symptom without it |", "|---|---|---|"]
        for fix in FIXES:
            symptom, cause, _ = " ".join(fix.__doc__.split()).partition(" Cause: ")
            assert symptom.startswith("Symptom: ") and cause, fix
            rows.append(
                f"| `{fix.__name__}` | `{fix.__module__.split('.')[-1]}` | {symptom.removeprefix('Symptom: ')} |"
            )
        assert len(FIXES) > 10, "torch has registered them"
        page = (CHECKOUT / "docs" / "internals" / "compat.md").read_text(encoding="utf-8")
        assert "\n".join(rows) in page, "expected in docs/internals/compat.md:\n" + "\n".join(rows)
