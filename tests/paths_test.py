"""Every path that tests read is there, also for those tests that are skipped on this machine."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import paths

# The names under which tests reach a folder: constants of `tests.paths`, and fixtures of `conftest.py`.
ROOTS = {name: value for name, value in vars(paths).items() if isinstance(value, Path)}
ROOTS |= {
    "fixtures_root": paths.FIXTURES,
    "shared_data": paths.SHARED,
    "shipped_bilm": paths.SHIPPED_BILM,
    "training_configs": paths.TRAINING_CONFIGS,
}
SOURCES = sorted((paths.CHECKOUT / "tests").rglob("*.py"))


def path_of(node: ast.expr) -> Path | None:
    """The path that `FIXTURES / "ner" / "dev.txt"` stands for; `None` for what is not a literal path below a root."""
    if isinstance(node, ast.Name):
        return ROOTS.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant):
        folder = path_of(node.left)
        return None if folder is None else folder / str(node.right.value)
    return None


def paths_in(source: str) -> Iterator[Path]:
    for node in ast.walk(ast.parse(source)):
        path = path_of(node) if isinstance(node, ast.BinOp) else None
        if path is not None:
            yield path


class TestPaths:
    @pytest.mark.parametrize("name", sorted(set(ROOTS) - {"SHARED", "shared_data"}))
    def test_every_root_is_there(self, name):
        """Oracle: the file system."""
        assert ROOTS[name].is_dir()

    def test_a_biLM_has_both_files(self):
        """Oracle: the file system."""
        for folder in (paths.TINY_BILM, paths.WORDS_BILM, paths.SHIPPED_BILM):
            assert all(file.is_file() for file in paths.bilm_files(folder))

    def test_every_literal_path_of_a_test_is_there(self):
        """Oracle: the file system; what lies in the folder next to the checkout only where there is one."""
        found = {(source, path) for source in SOURCES for path in paths_in(source.read_text(encoding="utf-8"))}
        assert len(found) > 50
        missing = [
            f"{source.relative_to(paths.CHECKOUT)}: {path}"
            for source, path in sorted(found)
            # A pattern has no path of its own; what is in `output` is made by commands.
            if "*" not in path.name and not path.exists() and not path.is_relative_to(paths.CHECKOUT / "output")
            if paths.SHARED.is_dir() or paths.SHARED not in path.parents
        ]
        assert not missing

    def test_no_other_module_computes_paths_of_its_own(self):
        """Oracle: the sources; a test that counts parents of its own file is wrong as soon as it is moved."""
        counting = [source.name for source in SOURCES if "__file__).resolve()" in source.read_text(encoding="utf-8")]
        assert counting == ["paths.py", "paths_test.py"]

    def test_files_of_the_package_that_the_docs_name_are_there(self):
        """Oracle: the file system; `<task>` stands for a name."""
        pages = [paths.CHECKOUT / "README.md", *sorted((paths.CHECKOUT / "docs").rglob("*.md"))]
        pattern = re.compile(r"`((?:elmo_tasks|training_configs|tests|benchmarks|examples|fixtures)/[\w./-]+)`")
        named = {(page.name, path) for page in pages for path in pattern.findall(page.read_text(encoding="utf-8"))}
        assert len(named) > 20
        assert not [(page, path) for page, path in sorted(named) if not (paths.CHECKOUT / path).exists()]

    def test_the_walk_sees_a_path_that_is_gone(self):
        """Oracle: by hand."""
        source = 'a = fixtures_root / "nowhere" / "dev.txt"\nb = other / "x"\nc = FIXTURES / name'
        assert paths.FIXTURES / "nowhere" / "dev.txt" in set(paths_in(source))
        assert paths.FIXTURES / "ner" not in set(paths_in(source))
