import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch  # noqa: F401

import allennlp_today
from allennlp_today.__main__ import tables_of_repairs
from allennlp_today.import_hooks import REPAIRS, REPLACED

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
        [("allennlp_today", "always", "1"), ("allennlp_today.repairs.training", "error", "0")],
    )
    def test_fixes_that_cannot_be_registered_are_no_error_of_torch(
        self, run_python, module, action, n_warnings
    ):
        """Without the first, as after a checkout was moved, only the hook is left."""
        assert run_python(BROKEN.format(module=module, action=action)).split() == [
            "2.0",
            n_warnings,
        ]

    def test_guards_cannot_be_switched_off(self, run_python, monkeypatch):
        monkeypatch.setenv("ALLENNLP_TODAY_WITHOUT", "defer_imports,load_archives_safely")
        code = "import warnings\nwith warnings.catch_warnings(record=True) as caught:\n"
        code += " warnings.simplefilter('always')\n import allennlp_today\n"
        code += "print(*[warning.message for warning in caught])"
        expected = "got ['load_archives_safely']; guards cannot be switched off\n"
        assert run_python(code).endswith(expected)

    def test_it_loads_only_the_standard_library(self, run_python):
        code = "import sys\nbefore = set(sys.modules)\nimport allennlp_today\n"
        code += "print(*set(sys.modules) - before)"
        loaded = {name.split(".")[0] for name in run_python(code).split()}
        # The second name of `__main__` comes from `multiprocessing`.
        assert loaded - {"__mp_main__", "allennlp_today", "elmo_tasks"} <= sys.stdlib_module_names


PACKAGES = {
    "allennlp_today": Path(allennlp_today.__file__).parent,
    "elmo_tasks": Path(allennlp_today.__file__).parents[2] / "elmo_tasks",
}


class TestRepairs:
    def test_the_page_has_the_tables_of_the_command(self):
        page = (Path(__file__).parents[1] / "REPAIRS.md").read_text(encoding="utf-8")
        titles = {f"fix of {package}" for package in PACKAGES} | {"guard"}
        for table in tables_of_repairs().split("\n\n"):
            # Tests declare some of their own.
            title, _, _ = table.removeprefix("| ").partition(" | ")
            if title in titles:
                assert table in page, f"expected in REPAIRS.md:\n{table}"

    def test_each_has_a_symptom_and_a_cause(self):
        ours = [
            repair for repair in REPAIRS if repair.function.__module__.startswith(tuple(PACKAGES))
        ]
        for repair in ours:
            symptom, _, cause = " ".join(repair.function.__doc__.split()).partition(" Cause: ")
            assert symptom.startswith("Symptom: ") and cause, repair.name
        assert len(ours) > 40, "torch has registered them"

    def test_a_fix_that_replaces_a_guard_is_known(self):
        """
        A fix wraps the guard of the same function, so it must not answer before the guard: see
        `trust/guards_test.py`.
        """

        guards = {repair.name for repair in REPAIRS if repair.is_guard}
        guarded = set()
        replaced_again = set()
        for replacement in REPLACED:
            if replacement.repair in guards:
                guarded.add(replacement.attribute)
            elif replacement.attribute in guarded:
                replaced_again.add(replacement.attribute)
        assert replaced_again == {
            "allennlp.common.cached_transformers.AutoModel",
            "allennlp.common.file_utils.cached_path",
            "allennlp.common.util.spacy_download",
        }

    def test_nothing_is_replaced_that_is_not_recorded(self):
        """
        Only `replace` and `replaces` record it, so no repair may assign to an attribute of what it
        repairs.
        """
        unrecorded = []
        n_repairs = 0
        for package, folder in PACKAGES.items():
            for file in folder.rglob("*.py"):
                for function in repairs_in(ast.parse(file.read_text("utf-8"))):
                    n_repairs += 1
                    repaired = repaired_by(function)
                    for name in assigned_attributes(function):
                        if name in repaired:
                            message = f"{file.name}: {function.name} changes {name}"
                            unrecorded.append(f"{package} {message}")
        assert not unrecorded
        assert n_repairs > 40


def repairs_in(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """The functions that are declared as repairs."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if re.match("(after_import|around_import|guard|applied_now)", decorators):
                yield node


def repaired_by(function: ast.FunctionDef) -> set[str]:
    """The names of modules in a repair: its argument, or what the file has imported."""
    arguments = {argument.arg for argument in function.args.args}
    return arguments | {"allennlp", "transformers", "torch"}


def assigned_attributes(function: ast.FunctionDef) -> Iterator[str]:
    """
    The first name of each attribute that a function assigns to, such as `module` of
    `module.Model.load`.
    """
    for node in ast.walk(function):
        targets = getattr(node, "targets", [])
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("setattr", "builtins.setattr"):
            yield ast.unparse(node.args[0]).partition(".")[0]
        for target in targets:
            for expression in ast.walk(target):
                if isinstance(expression, ast.Attribute):
                    yield ast.unparse(expression).partition(".")[0]
