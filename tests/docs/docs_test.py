"""
Every command in the documentation runs on small data, or has a note that says why it is not run.
"""

import ast
import contextlib
import io
import json
import re
from itertools import chain
from pathlib import Path

import pytest

from elmo_tasks.configs import evaluate_file
from tests.docs.blocks import DOCS, PAGES, Block, blocks_of
from tests.docs.home import make_home
from tests.docs.shell import Shell, check_command, commands_of
from tests.paths import CHECKOUT, PACKAGE, TINY_BILM, TRAINING_CONFIGS

DAILY = {
    CHECKOUT / "README.md",
    DOCS / "vectors" / "elmo.md",
    DOCS / "tasks" / "use.md",
    DOCS / "tasks" / "spacy.md",
}
BLOCKS = {page: blocks_of(page) for page in PAGES}
# `text` is output, or the format of a file.
LANGUAGES = {"bash", "json", "jsonnet", "python", "text"}
REASONS = {
    "downloads a gigabyte",
    "installs packages",
    "needs a GPU",
    "needs an AMD processor",
    "takes long",
}


def with_blocks() -> list[object]:
    """The pages with blocks that run, most of them weekly."""
    pages = []
    for page, blocks in BLOCKS.items():
        if any(block.language not in ("", "text") for block in blocks):
            marks = [] if page in DAILY else [pytest.mark.weekly]
            pages.append(pytest.param(page, id=str(page.relative_to(CHECKOUT)), marks=marks))
    return pages


def check_block(block: Block) -> None:
    """Checks a block that is not run."""
    if block.language == "bash":
        for _, words, line in commands_of(block.text):
            if words:
                check_command(words, line)


def check_json(text: str) -> None:
    """A document, or a document per line."""
    documents = [text] if text.startswith(("{\n", "[\n")) else text.splitlines()
    for document in documents:
        json.loads(document)


def run_block(block: Block, shell: Shell, names: dict) -> None:
    if block.not_run is not None:
        check_block(block)
    elif block.language == "bash":
        shell.run(block.text)
    elif block.language == "python":
        # Empty lines, so that a traceback has the lines of the page.
        code = compile("\n" * block.line + block.text, block.name, "exec")
        with shell.entered():
            exec(code, names)
    elif block.language == "json":
        check_json(block.text)
    elif block.language == "jsonnet":
        title = re.match(r"// (\S+\.jsonnet)\n", block.text)
        assert title, f"{block.name}: a config must begin with a comment that names its file"
        with shell.entered():
            Path(title[1]).write_text(block.text, encoding="utf-8")
            json.loads(evaluate_file(title[1], {}))


@pytest.mark.slow
@pytest.mark.parametrize("page", with_blocks())
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, environment, logging_as_before):
    """Blocks run in order, and may use what earlier blocks have created."""
    monkeypatch.delenv("ELMO_TASKS_CACHE", raising=False)
    work = make_home(tmp_path)
    variables = {
        "HOME": str(tmp_path),
        "ELMO_TASKS_DATA": str(tmp_path / "data"),
        "ELMO_TASKS_HOME": str(tmp_path / ".cache" / "elmo_tasks"),
        "ELMO_TASKS_BILM": str(TINY_BILM),
    }
    (work / "models").symlink_to(CHECKOUT / "models")
    if page.name == "transformers.md":
        from tests.modules.contextual import checkpoints

        monkeypatch.setattr(checkpoints, "POSITIONS", 512)
        checkpoints.write_checkpoint("bert", work / "my-bert")
    shell = Shell(work, variables)
    names: dict[str, object] = {}
    output = io.StringIO()
    for block in BLOCKS[page]:
        if block.is_output:
            assert output.getvalue() == block.text, block.name
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                run_block(block, shell, names)
        except (Exception, SystemExit) as error:
            pytest.fail(f"{block.name}: {type(error).__name__}: {error}\n{block.text}")


def test_every_block_has_a_known_language_and_reason():
    for block in chain.from_iterable(BLOCKS.values()):
        assert block.language in LANGUAGES, block.name
        assert block.not_run is None or block.not_run in REASONS, block.name


def test_links_lead_somewhere():
    broken = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                broken.append(f"{page.name}: {link}")
    assert not broken


def names_in(source: Path) -> set[str]:
    """
    The functions, classes and constants of a module, with methods and attributes as `Class.method`,
    or the words of a config.
    """
    if source.suffix != ".py":
        return set(re.findall(r"\w+", source.read_text(encoding="utf-8")))
    names = set()
    for statement in ast.parse(source.read_text(encoding="utf-8")).body:
        names |= defined_by(statement)
        if isinstance(statement, ast.ClassDef):
            for member in statement.body:
                names |= {f"{statement.name}.{name}" for name in defined_by(member)}
    return names


def defined_by(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
        case ast.Assign(targets=targets):
            return {target.id for target in targets if isinstance(target, ast.Name)}
    return set()


def test_links_to_code_name_what_is_there():
    missing = []
    for page in PAGES:
        content = page.read_text(encoding="utf-8")
        for text, target in re.findall(r"\[([^\]]+)\]\((\S+\.(?:py|\w+sonnet))\)", content):
            names = names_in(page.parent / target)
            for name in re.findall(r"`([^`]+)`", text):
                if name not in names:
                    missing.append(f"{target}: {name}")
    assert not missing


def test_every_page_is_in_the_navigation():
    _, _, navigation = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")
    in_navigation = re.findall(r"\S+\.md$", navigation, re.MULTILINE)
    pages = [str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")]
    assert sorted(in_navigation) == sorted(pages)


def test_all_variables_are_documented():
    names: set[str] = set()
    for file in (*PACKAGE.rglob("*.py"), *TRAINING_CONFIGS.rglob("*sonnet")):
        names.update(re.findall(r"\bELMO_TASKS_[A-Z_]+\b", file.read_text(encoding="utf-8")))
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert names
    assert not {name for name in names if f"`{name}`" not in pages}
