"""
Every command in the documentation runs on small data, or has a note that says why it is not run.
"""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from elmo_tasks.configs import evaluate_file
from tests.docs.blocks import DOCS, PAGES, Block, blocks_of
from tests.docs.home import make_home
from tests.docs.shell import Shell, check_command, commands_of
from tests.paths import CHECKOUT, PACKAGE, TINY_BILM

DAILY = {
    CHECKOUT / "README.md",
    DOCS / "vectors" / "elmo.md",
    DOCS / "tasks" / "use.md",
    DOCS / "tasks" / "spacy.md",
}
BLOCKS = {page: blocks_of(page) for page in PAGES}
# `text` is output, or the format of a file.
LANGUAGES = {"bash", "json", "jsonnet", "python", "text"}
REASONS = {"installs packages", "needs a GPU", "takes long", "downloads a gigabyte"}


def with_blocks() -> list[object]:
    """The pages with blocks that run, most of them weekly."""
    pages = []
    for page, blocks in BLOCKS.items():
        if any(block.language not in ("", "text") for block in blocks):
            marks = [] if page in DAILY else [pytest.mark.weekly]
            pages.append(pytest.param(page, id=str(page.relative_to(CHECKOUT)), marks=marks))
    return pages


def run_block(block: Block, shell: Shell, names: dict) -> None:
    if block.not_run is not None:
        for _, words, line in commands_of(block.text) if block.language == "bash" else []:
            if words:
                check_command(words, line)
    elif block.language == "bash":
        shell.run(block.text)
    elif block.language == "python":
        with shell.entered():
            exec(compile("\n" * block.line + block.text, block.name, "exec"), names)
    elif block.language == "json":
        for line in (
            [block.text] if block.text.startswith(("{\n", "[\n")) else block.text.splitlines()
        ):
            json.loads(line)
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
    shell, names, output = Shell(work, variables), {}, io.StringIO()
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
    blocks = [block for of_page in BLOCKS.values() for block in of_page]
    assert not [block.name for block in blocks if block.language not in LANGUAGES]
    assert {block.not_run for block in blocks if block.not_run} <= REASONS


def test_links_lead_somewhere():
    broken = [
        f"{page.name}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not broken


def names_in(source: Path) -> set[str]:
    """
    The functions, classes and constants of a module, with their methods and attributes as
    `Class.method`.
    """
    names = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        parts = [node, *(node.body if isinstance(node, ast.ClassDef) else [])]
        for part in parts:
            targets = getattr(part, "targets", [getattr(part, "target", part)])
            found = [getattr(target, "id", getattr(target, "name", "")) for target in targets]
            names |= {name if part is node else f"{node.name}.{name}" for name in found}
    return names


def test_links_to_code_name_what_is_there():
    missing = []
    for page in PAGES:
        for text, target in re.findall(
            r"\[([^\]]+)\]\((\S+\.(?:py|\w+sonnet))\)", page.read_text(encoding="utf-8")
        ):
            source = page.parent / target
            names = (
                names_in(source)
                if source.suffix == ".py"
                else set(re.findall(r"\w+", source.read_text()))
            )
            missing += [
                f"{target}: {name}" for name in re.findall(r"`([^`]+)`", text) if name not in names
            ]
    assert not missing


def test_every_page_is_in_the_navigation():
    nav = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert sorted(re.findall(r"\S+\.md$", nav, re.MULTILINE)) == sorted(
        str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")
    )


def test_all_variables_are_documented():
    files = [*PACKAGE.rglob("*.py"), *(CHECKOUT / "training_configs").rglob("*sonnet")]
    names = {
        name for file in files for name in re.findall(r"\bELMO_TASKS_[A-Z_]+\b", file.read_text())
    }
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert names and not {name for name in names if f"`{name}`" not in pages}
