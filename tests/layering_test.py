"""Who may import whom, and how long a file may be; read from the source, so that no import hides in a branch."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import PACKAGE

FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(module: str) -> str:
    """`bilm` for `elmo_tasks.bilm.options`, the empty string for `elmo_tasks` itself."""
    return (module.split(".") + [""])[1]


def module_of(file: Path) -> str:
    names = file.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


# The parts of elmo_tasks that a part may import, besides itself. "" is elmo_tasks/__init__.py.
GROUND = {"version", "shipped", "text_lines", "atomic_files", "tags", "progress", "ray_session", "tokenization"}
INSIDE = {
    **{part: set() for part in GROUND},
    "": {"vectors", "version"},
    # What `python -m elmo_tasks` starts, without AllenNLP.
    "__main__": {"embed_job", "version"},
    "analysis": {"models", "data", "modules", "vectors", "bilm", *GROUND},
    "bilm": GROUND,
    "commands": {
        *("replication", "embed_job", "analysis", "predictors", "models", "data", "modules", "vectors", "bilm"),
        *("environment", *GROUND),
    },
    "compat": set(),
    "data": {"bilm", *GROUND},
    "embed_job": {"vectors", "bilm", *GROUND},
    "environment": GROUND,
    "models": {"data", "modules", "bilm", "training", *GROUND},
    "modules": {"bilm", *GROUND},
    "predictors": {"models", "data", "modules", "vectors", "bilm", *GROUND},
    "replication": {"analysis", "data", "environment", *GROUND},
    "training": GROUND,
    "vectors": {"bilm", *GROUND},
}
PARTS = {part_of(module_of(file)) for file in FILES} | {*INSIDE, "plugin"}
INSIDE["plugin"] = PARTS
# What a part may import from elsewhere, beside the standard library; a part without a row may import anything.
OUTSIDE = {
    "": set(),
    "__main__": set(),
    "bilm": {"torch", "numpy", "h5py", "lmdb", "triton"},
    "vectors": {"torch", "numpy", "h5py", "spacy", "sklearn"},
    "compat": {"wrapt"},
    "embed_job": {"numpy", "h5py"},
    "progress": {"tqdm"},
    "ray_session": set(),
    "tokenization": set(),
}
# Parts that are imported before what they are for, or without it: their functions may import anything from elsewhere.
LAZY = {"compat", "embed_job", "vectors", "ray_session", "tokenization"}

MAX_LINES_OF_FILE = 400
MAX_LINES_OF_FUNCTION = 60


def imports_of(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, int, bool]]:
    """The modules that a module imports: the full name, the line, and whether it waits for a call of a function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    in_functions = {id(node) for function in functions for node in ast.walk(function)}
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".") if is_package else module.split(".")[:-1]
                base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])
            # `from elmo_tasks import bilm` imports the part and not only the package around it.
            names = [f"{base}.{alias.name}" for alias in node.names] if base == PACKAGE.name else [base]
        for name in names:
            yield name, node.lineno, id(node) in in_functions


def broken_rules(source: str, module: str, is_package: bool = False) -> list[str]:
    """What a module imports and may not, one sentence each."""
    part = part_of(module)
    broken = []
    for name, line, is_lazy in imports_of(ast.parse(source), module, is_package):
        top = name.split(".")[0]
        if top == PACKAGE.name:
            imported = part_of(name)
            # What is no part is a name in elmo_tasks/__init__.py, as __version__ is.
            is_allowed = imported == part or imported not in PARTS or imported in INSIDE.get(part, ())
        else:
            is_free = part not in OUTSIDE or (part in LAZY and is_lazy)
            is_allowed = is_free or top in OUTSIDE[part] or top in sys.stdlib_module_names
        if not is_allowed:
            broken.append(f"{module}, line {line}: {part or PACKAGE.name} may not import {name}")
    return broken


def long_functions(source: str) -> list[str]:
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    lengths = {function: function.end_lineno - function.lineno + 1 for function in functions}
    return [f"{f.name}: {length} lines" for f, length in lengths.items() if length > MAX_LINES_OF_FUNCTION]


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a new interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent)
    assert process.returncode == 0, process.stderr
    return set(process.stdout.split())


class TestLayering:
    def test_every_part_has_its_rule(self):
        """Oracle: the folders and modules that there are; a new one needs a row in `INSIDE`."""
        assert {"elmo_tasks", "elmo_tasks.bilm.bilm"} <= {module_of(file) for file in FILES}
        assert set(INSIDE) == PARTS, f"no rule for {sorted(PARTS - set(INSIDE))}"

    @pytest.mark.parametrize("file", FILES, ids=module_of)
    def test_a_module_imports_only_what_its_part_may(self, file):
        """Oracle: the tables `INSIDE` and `OUTSIDE`."""
        assert not broken_rules(file.read_text(encoding="utf-8"), module_of(file), file.name == "__init__.py")

    @pytest.mark.parametrize("file", FILES, ids=module_of)
    def test_files_and_functions_are_short(self, file):
        """Oracle: the two limits."""
        source = file.read_text(encoding="utf-8")
        assert len(source.splitlines()) <= MAX_LINES_OF_FILE
        assert not long_functions(source)

    def test_nothing_but_the_plugin_imports_commands(self):
        """Oracle: the table `INSIDE` itself."""
        assert [part for part, inside in INSIDE.items() if "commands" in inside] == ["plugin"]


class TestTheRulesThemselves:
    @pytest.mark.parametrize(
        ("module", "source"),
        [
            ("elmo_tasks.bilm.bilm", "import allennlp.nn"),
            ("elmo_tasks.bilm.bilm", "from allennlp.nn import util"),
            ("elmo_tasks.bilm.bilm", "def f():\n    import scipy"),
            ("elmo_tasks.bilm.bilm", "if False:\n    from elmo_tasks.modules import x"),
            ("elmo_tasks.bilm.bilm", "from elmo_tasks import modules"),
            ("elmo_tasks.bilm.bilm", "from ..modules import x"),
            ("elmo_tasks.bilm.bilm", "from .. import modules"),
            ("elmo_tasks.bilm.bilm", "import elmo_tasks.compat as c"),
            ("elmo_tasks.modules.mix", "from elmo_tasks.data import x"),
            ("elmo_tasks.data.reader", "def f():\n    from elmo_tasks.models import x"),
            ("elmo_tasks.models.srl", "from elmo_tasks.predictors.srl import x"),
            ("elmo_tasks.models.srl", "import elmo_tasks.plugin"),
            ("elmo_tasks.analysis.tables", "from elmo_tasks.commands import x"),
            ("elmo_tasks.compat", "import torch"),
            ("elmo_tasks.compat.hooks", "class A:\n    import torch"),
            ("elmo_tasks.compat.hooks", "def f():\n    import elmo_tasks.bilm"),
            ("elmo_tasks", "import torch"),
        ],
    )
    def test_a_forbidden_import_is_found(self, module, source):
        """Oracle: by hand."""
        assert len(broken_rules(source, module)) == 1

    @pytest.mark.parametrize(
        ("module", "source"),
        [
            ("elmo_tasks.bilm.bilm", "import json, torch.nn, h5py\nfrom numpy import array"),
            ("elmo_tasks.bilm.bilm", "from .options import x\nfrom . import weights\nimport elmo_tasks.bilm.weights"),
            ("elmo_tasks.models.srl", "import allennlp\nfrom elmo_tasks.modules.mix import x"),
            (
                "elmo_tasks.commands.tables",
                "from elmo_tasks.analysis import x\nfrom elmo_tasks import __version__",
            ),
            ("elmo_tasks.compat.hooks", "import sys, wrapt\ndef f():\n    import torch"),
            ("elmo_tasks.plugin", "from elmo_tasks import commands, models\nimport elmo_tasks.data.readers"),
            ("elmo_tasks", "def __getattr__(name):\n    from elmo_tasks.vectors.elmo import Elmo"),
        ],
    )
    def test_an_import_that_is_allowed_is_not(self, module, source):
        """Oracle: by hand."""
        assert not broken_rules(source, module)

    def test_in_a_package_one_dot_is_the_package_itself(self):
        """Oracle: by hand."""
        assert not broken_rules("from .bilm import Bilm", "elmo_tasks.bilm", is_package=True)
        assert broken_rules("from ..modules import x", "elmo_tasks.bilm", is_package=True)

    def test_a_long_function_is_found(self):
        """Oracle: functions of 60 and of 61 lines."""
        sources = ["class A:\n    def f(self):\n" + "        pass\n" * n for n in (59, 60)]
        assert [long_functions(source) for source in sources] == [[], ["f: 61 lines"]]


class TestImportCost:
    def test_importing_the_package_loads_no_torch(self):
        """Oracle: `sys.modules` of a new interpreter."""
        assert not loaded_by("import elmo_tasks") & {"torch", "numpy", "h5py", "allennlp", "spacy"}

    def test_embedding_a_text_needs_no_allennlp(self, tmp_path):
        """Oracle: `sys.modules` of a new interpreter that has written vectors, with the bare name of the small biLM."""
        (tmp_path / "text.txt").write_text("a b\n")
        arguments = ["embed", str(tmp_path / "text.txt"), str(tmp_path / "out.h5")]
        loaded = loaded_by(f"from elmo_tasks.__main__ import main\nassert main({arguments}) == 0")
        assert "torch" in loaded and (tmp_path / "out.h5").exists()
        assert not loaded & {"allennlp", "allennlp_models", "spacy", "transformers", "sklearn", "pyarrow", "ray"}

    def test_importing_the_bilm_loads_no_allennlp(self):
        """Oracle: `sys.modules` of a new interpreter, where torch has called our entry point."""
        loaded = loaded_by("import elmo_tasks.bilm")
        assert "torch" in loaded
        assert not loaded & {"allennlp", "allennlp_models", "spacy", "transformers", "nltk"}
