"""Tests of elmo_tasks.compat itself."""

import json

import pytest

from elmo_tasks import compat
from elmo_tasks.compat import fixes
from tests.compat.packages import write_package, write_torch

NO_ALLENNLP = """
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"allennlp", "allennlp_models", "spacy", "transformers", "nltk", "wrapt"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NotInstalled())
import torch
import elmo_tasks.compat
print(elmo_tasks.compat._installed, torch.ones(2).sum().item())
"""

# Breaks the fixes in one way, imports torch and uses it, and then imports AllenNLP twice.
BROKEN = """
import importlib, json, sys, warnings
def fail(*args):
    raise AttributeError("a function that is gone")
{breakage}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
    import elmo_tasks.compat
    elmo_tasks.compat.install()
total = torch.ones(2).sum().item()
def attempt(package):
    try:
        importlib.import_module(package)
    except ImportError as error:
        return str(error)
found = importlib.util.find_spec("allennlp") is not None
errors = [attempt("allennlp") for _ in range(2)]
messages = [str(w.message) for w in caught if "elmo_tasks" in str(w.message)]
print(json.dumps(dict(total=total, warnings=messages, errors=errors, found=found)))
"""
BREAKAGES = {
    "a module of fixes that cannot be imported": "sys.modules['elmo_tasks.compat.torch_fixes'] = None",
    "a hook that cannot be registered": (
        "import elmo_tasks.compat.import_hooks\nelmo_tasks.compat.import_hooks.around_import = fail"
    ),
    "a fix that fails": (
        "import elmo_tasks.compat.fixes\nelmo_tasks.compat.fixes.AFTER_IMPORT['allennlp.version'] = (fail,)"
    ),
}


@pytest.fixture(scope="module")
def allennlp(tmp_path_factory):
    """A folder with an empty AllenNLP of the right version."""
    folder = tmp_path_factory.mktemp("allennlp")
    write_package(folder, "allennlp", "2.10.1")
    return folder


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """The same with a torch that is imported at once; one test of each kind has the real one."""
    folder = tmp_path_factory.mktemp("stand_ins")
    write_package(folder, "allennlp", "2.10.1")
    write_torch(folder)
    return folder


class TestInstall:
    def test_torch_is_imported_where_allennlp_is_not_installed(self, run_python):
        """Oracle: an interpreter in which none of it can be found; that torch called `install` there."""
        assert run_python(NO_ALLENNLP).split() == ["True", "2.0"]

    @pytest.mark.parametrize(
        ("breakage", "packages"),
        [("a module of fixes that cannot be imported", "allennlp"), ("a hook that cannot be registered", "stand_ins")],
    )
    def test_fixes_that_cannot_be_registered_do_not_disturb_torch(self, breakage, packages, run_python, request):
        """Oracle: a sum; one warning with the remedy, whose text is AllenNLP's error at every attempt."""
        code, path = BROKEN.format(breakage=BREAKAGES[breakage]), request.getfixturevalue(packages)
        result = json.loads(run_python(code, path=path))
        assert result["total"] == 2.0 and result["found"]
        (warning,) = result["warnings"]
        assert "AllenNLP cannot be imported" in warning and "Remedy: reinstall elmo_tasks" in warning
        assert result["errors"] == [warning, warning]

    def test_a_fix_that_fails_is_an_error_of_the_module_and_not_of_torch(self, run_python, stand_ins):
        """Oracle: no warning; the error names the fix, the module, the cause and the remedy, at every attempt."""
        result = json.loads(run_python(BROKEN.format(breakage=BREAKAGES["a fix that fails"]), path=stand_ins))
        assert result["total"] == 2.0 and result["warnings"] == []
        first, second = result["errors"]
        assert first == second
        for words in ("'fail'", "'allennlp.version'", "a function that is gone", "Remedy: reinstall AllenNLP 2.10.1"):
            assert words in first

    def test_torch_is_imported_where_warnings_are_errors(self, run_python, stand_ins):
        """Oracle: a sum, and AllenNLP's error."""
        code = BROKEN.replace('simplefilter("always")', 'simplefilter("error", RuntimeWarning)')
        breakage = BREAKAGES["a hook that cannot be registered"]
        result = json.loads(run_python(code.format(breakage=breakage), path=stand_ins))
        assert result["total"] == 2.0
        assert "AllenNLP cannot be imported" in result["errors"][0]

    @pytest.mark.parametrize("broken", ["warnings.showwarning = fail", "sys.stderr.close()"])
    def test_torch_is_imported_where_a_warning_cannot_be_shown(self, run_python, stand_ins, broken):
        """Oracle: a sum."""
        setup = BREAKAGES["a hook that cannot be registered"]
        code = (
            "import sys, warnings\ndef fail(*arguments, **rest):\n    raise ValueError\n"
            f"{setup}\n{broken}\nimport torch\nimport elmo_tasks.compat\nelmo_tasks.compat.install()\n"
            "print(torch.ones(2).sum().item())"
        )
        assert run_python(code, path=stand_ins) == "2.0\n"

    def test_an_allennlp_that_is_not_installed_is_not_found(self, run_python):
        """Oracle: `find_spec` where no finder knows the package."""
        code = (
            'import importlib.util, sys\nsys.modules["elmo_tasks.compat.torch_fixes"] = None\n'
            "import elmo_tasks.compat\nelmo_tasks.compat.install()\n"
            'sys.path[:] = []\nsys.path_importer_cache.clear()\nprint(importlib.util.find_spec("allennlp"))'
        )
        assert run_python(code).split() == ["None"]

    def test_installing_twice_does_nothing(self, monkeypatch):
        """Oracle: no hook is registered the second time."""
        import torch  # noqa: F401

        monkeypatch.setattr(fixes, "register", lambda: pytest.fail("registered again"))
        compat.install()

    def test_installing_too_late_is_a_warning(self, monkeypatch):
        """Oracle: the message, which names the rule and the remedy; nothing is registered."""
        import allennlp  # noqa: F401

        monkeypatch.setattr(compat, "_installed", False)
        monkeypatch.setattr(fixes, "register", lambda: pytest.fail("registered"))
        with pytest.warns(RuntimeWarning, match=r"before AllenNLP is imported.*Remedy"):
            compat.install()


class TestFixes:
    def test_every_fix_says_what_it_is_for(self):
        """Oracle: the words "Symptom" and "Cause" in its docstring."""
        functions = {fix for fixes_of_module in fixes.AFTER_IMPORT.values() for fix in fixes_of_module}
        for fix in functions | set(fixes.AROUND_IMPORT.values()) | {fixes.defer}:
            assert "Symptom" in fix.__doc__, fix
            assert "ause" in fix.__doc__, fix
