"""
What each part of the packages imports is declared by its installation, and the commands of the
pages install it.
"""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, blocks_of
from tests.docs.shell import commands_of
from tests.paths import CHECKOUT

# The extras that a part needs, besides what `install_requires` has; of several parts, the longest
# path counts.
EXTRAS = {
    "elmo_tasks": "",
    "elmo_tasks/corpora": "allennlp parquet",
    "elmo_tasks/corpora/corpus.py": "parquet",
    "elmo_tasks/corpora/embed.py": "parquet",
    "elmo_tasks/files/tables.py": "tables",
    "elmo_tasks/commands": "allennlp",
    "elmo_tasks/commands/serve.py": "serve",
    "elmo_tasks/configs.py": "allennlp",
    "elmo_tasks/data": "allennlp",
    "elmo_tasks/predictors/pictures.py": "spacy",
    "elmo_tasks/predictors/results.py": "spacy",
    "elmo_tasks/metrics": "allennlp",
    "elmo_tasks/models": "allennlp",
    "elmo_tasks/modules": "allennlp",
    "elmo_tasks/plugin.py": "allennlp",
    "elmo_tasks/predictors": "allennlp",
    "elmo_tasks/paper": "allennlp",
    "elmo_tasks/web": "allennlp demo",
    "elmo_tasks/web/serve.py": "allennlp serve",
    "elmo_tasks/spacy": "spacy",
    "elmo_tasks/spacy/task_components.py": "allennlp",
    "elmo_tasks/spacy/span_groups.py": "spacy",
    "elmo_tasks/text/sentences.py": "spacy",
    "elmo_tasks/trainer": "allennlp",
    "elmo_tasks/vectors/sklearn_vectorizer.py": "sklearn",
    "allennlp_today/allennlp_today": "today",
}
# Modules with other names than their distributions, and modules of what a distribution itself
# requires.
DISTRIBUTIONS = {
    "_jsonnet": "jsonnet",
    "sklearn": "scikit-learn",
    "anyio": "fastapi",
    "pydantic": "fastapi",
    "srsly": "spacy",
    "starlette": "gradio",
    "thinc": "spacy",
    "triton": "torch",
}


def names(requirements: str) -> set[str]:
    """The distributions that are required, one in a line."""
    return set(re.findall(r"^[\w-]+", requirements, re.M))


@pytest.fixture(scope="module")
def declared() -> dict[str, set[str]]:
    """The distributions of the package (`""`), of each extra, and of the second package."""
    setup = ConfigParser()
    setup.read(CHECKOUT / "setup.cfg")
    today = tomllib.loads((CHECKOUT / "allennlp_today/pyproject.toml").read_text())
    allennlp = names((CHECKOUT / "allennlp.txt").read_text())
    declared = {extra: names(lines) for extra, lines in setup["options.extras_require"].items()}
    declared["allennlp"] |= allennlp
    declared[""] = names(setup["options"]["install_requires"])
    declared["today"] = names("\n".join(today["project"]["dependencies"])) | allennlp
    return declared


def imports(node: ast.AST, extra: str = "") -> Iterator[tuple[str, str]]:
    """Each module that is imported, and the extra in a `with needs(extra)` around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield alias.name, extra
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield child.module, extra
        elif isinstance(child, ast.With):
            yield from imports(child, needed_by(child) or extra)
        else:
            yield from imports(child, extra)


def needed_by(statement: ast.With) -> str | None:
    """`NAME` of `with needs("NAME")`."""
    needs = re.match(r"with needs\('(\w+)'\)", ast.unparse(statement))
    return needs[1] if needs else None


def extras_of(file: str) -> list[str]:
    """The extras that a file may import, by the longest path in `EXTRAS` that has it."""
    parts = [part for part in EXTRAS if Path(file).is_relative_to(part)]
    return EXTRAS[max(parts, key=len)].split()


@pytest.mark.parametrize("package", ["elmo_tasks", "allennlp_today/allennlp_today"])
def test_every_import_is_declared(package, declared):
    always_there = {"elmo_tasks", "allennlp_today", *sys.stdlib_module_names}
    undeclared = set()
    for path in (CHECKOUT / package).rglob("*.py"):
        file = str(path.relative_to(CHECKOUT))
        for module, extra in imports(ast.parse(path.read_text(encoding="utf-8"))):
            library, _, _ = module.partition(".")
            if library in always_there:
                continue
            allowed = declared[""] | declared[extra]
            for name in extras_of(file):
                allowed = allowed | declared[name]
            if DISTRIBUTIONS.get(library, library.replace("_", "-")) not in allowed:
                undeclared.add((file, library))
    assert undeclared == set()


def test_the_page_has_all_extras_for_users(declared):
    page = (CHECKOUT / "docs/installing.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z]+)` \|", page, re.M)
    assert sorted(rows) == sorted(declared.keys() - {"", "today", "docs", "dev"})


def installations() -> Iterator[str]:
    """
    The commands of all pages that call pip or uv, except those that install files that were built
    before.
    """
    for page in PAGES:
        for block in blocks_of(page):
            if block.not_run == "installs packages":
                yield from installations_in(block.text)


def installations_in(text: str) -> Iterator[str]:
    for line in re.split(r"\n|&&", text):
        for _, words, _ in commands_of(line):
            is_installation = words[:2] in (["pip", "install"], ["uv", "pip"])
            if is_installation and "dist/" not in line:
                yield line.partition(" #")[0].strip()


@pytest.mark.weekly
@pytest.mark.parametrize("command", sorted(set(installations())))
def test_commands_of_the_pages_can_be_met(command, tmp_path):
    """
    pip finds this environment's packages, such as torch; uv has an empty environment, and reads
    metadata only.
    """
    _, words, _ = next(commands_of(command))
    if words[0] == "uv":
        uv = shutil.which("uv")
        if uv is None:
            pytest.skip("uv is not installed, which pages name: `pip install uv`")
        environment = tmp_path / "new"
        make_environment = [uv, "venv", "--quiet", "--python", sys.executable, environment]
        subprocess.run(make_environment, check=True)
        install = [uv, "pip", "install", "--python", environment]
        requirements = words[3:]
    else:
        install = [sys.executable, "-m", "pip", "install"]
        requirements = words[2:]
    dry_run = [*install, "--dry-run", *requirements]
    process = subprocess.run(dry_run, cwd=CHECKOUT, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_folders_of_a_target_exist():
    dry_run = subprocess.run(
        ["make", "--dry-run", "test-rounding"], cwd=CHECKOUT, capture_output=True, text=True
    )
    folders = re.findall(r"tests/\S+", dry_run.stdout)
    assert "tests/bilm" in folders
    assert [folder for folder in folders if not (CHECKOUT / folder).is_dir()] == []
