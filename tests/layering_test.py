"""Tests of what imports cost; `make check` tests which modules may import which."""

import subprocess
import sys
import tomllib

import pytest

from tests.paths import CHECKOUT, PACKAGE

# Modules for users of an optional library; other modules import such a library only when they use
# it.
FOR_A_LIBRARY = {
    "elmo_tasks.bilm.lstm.triton_kernels",
    "elmo_tasks.vectors.sklearn_vectorizer",
}
OPTIONAL = {
    "allennlp",
    "allennlp_models",
    "spacy",
    "transformers",
    "sklearn",
    "pyarrow",
    "ray",
    "scipy",
    "nltk",
    "more_itertools",
}


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a new interpreter has loaded after a statement."""
    code = f"import sys\n{statement}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT)
    assert process.returncode == 0, process.stderr
    return set(process.stdout.split())


def modules_of(*parts: str) -> list[str]:
    """The modules of some parts of the package, except `FOR_A_LIBRARY`."""
    names = set()
    for part in parts:
        for file in (PACKAGE / part).rglob("*.py"):
            name = ".".join(file.relative_to(CHECKOUT).with_suffix("").parts)
            names.add(name.removesuffix(".__init__"))
    assert names >= {f"elmo_tasks.{part}" for part in parts}
    return sorted(names - FOR_A_LIBRARY)


def picture_of(layers: list[str]) -> str:
    """A box for each layer of a contract in pyproject.toml, from top to bottom."""
    rows = [layer.replace(" | ", "   ") for layer in layers]
    width = max(len(row) for row in rows) + 4
    lines = [f"┌{'─' * width}┐"]
    for row in rows:
        lines += [f"│{row:^{width}}│", f"├{'─' * width}┤"]
    lines[-1] = f"└{'─' * width}┘"
    return "\n".join(lines)


def test_the_picture_of_the_layers_is_that_of_the_contract():
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    picture = picture_of(layers)
    page = CHECKOUT / "docs" / "internals" / "architecture.md"
    assert f"```text\n{picture}\n```" in page.read_text("utf-8"), f"expected\n{picture}"


class TestImportCost:
    def test_importing_the_package_loads_no_torch(self):
        assert not loaded_by("import elmo_tasks") & {"torch", "numpy", "h5py", "allennlp", "spacy"}

    def test_the_repairs_about_elmo_load_only_the_standard_library(self):
        """`import torch` imports them."""
        loaded = loaded_by("import elmo_tasks.old_elmo") - loaded_by("import elmo_tasks")
        # `multiprocessing` gives `__main__` a second name.
        assert loaded - {"__mp_main__", "allennlp_today"} <= sys.stdlib_module_names

    def test_vectors_and_the_job_load_no_library_that_is_optional(self, tmp_path):
        """Imports do not query the GPU driver either."""
        (tmp_path / "text.txt").write_text("a b\n")
        arguments = ["embed", str(tmp_path / "text.txt"), str(tmp_path / "out.h5")]
        modules = [*modules_of("vectors", "bilm"), "elmo_tasks.corpora.embed"]
        statements = [
            "import torch",
            "asked = torch.cuda.is_available",
            # A call of any of these would fail.
            "torch.cuda.is_available = torch.cuda.device_count = torch.cuda.init = None",
            "import " + ", ".join(modules),
            "torch.cuda.is_available = asked",
            "from elmo_tasks.__main__ import main",
            f"assert main({arguments}) == 0",
        ]
        loaded = loaded_by("\n".join(statements))
        assert "torch" in loaded
        assert (tmp_path / "out.h5").exists()
        assert not loaded & OPTIONAL

    @pytest.mark.weekly
    def test_a_pipeline_of_spacy_needs_no_other_library(self):
        """spaCy imports all components that are installed."""
        missing = OPTIONAL - {"spacy"}
        hide = f"sys.modules.update(dict.fromkeys({missing}))"
        loaded_by(f"{hide}\nimport spacy\nspacy.blank('en').add_pipe('elmo')")
