"""README.md and docs/: every command in them runs on small data, or says why it does not."""

import contextlib
import io
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from elmo_tasks.environment import evaluate_file
from tests.docs.blocks import DOCS, PAGES, Block, blocks_of, indented_commands
from tests.docs.home import make_home
from tests.docs.hooks import hooks
from tests.docs.shell import Shell, check_command, commands_of
from tests.paths import CHECKOUT, PACKAGE, TINY_BILM

BLOCKS = {page: blocks_of(page) for page in PAGES}
WITH_BLOCKS = [page for page, blocks in BLOCKS.items() if any(block.language not in ("", "text") for block in blocks)]
# `text` is output, or a file's form.
LANGUAGES = {"bash", "json", "jsonnet", "python", "text"}
# Why a block may be left out, and how many there are at most.
REASONS = {"installs packages", "needs a GPU", "needs a cluster", "takes long", "downloads a gigabyte"}
MOST_NOT_RUN = 22


def run_block(block: Block, shell: Shell, names: dict) -> None:
    if block.not_run is not None:
        if block.language == "bash":
            for _, words, line in commands_of(block.text):
                if words:
                    check_command(words, line)
        elif block.language == "python":
            compile(block.text, block.name, "exec")
    elif block.language == "bash":
        shell.run(block.text)
    elif block.language == "python":
        with shell.entered():
            exec(compile("\n" * block.line + block.text, block.name, "exec"), names)
    elif block.language == "json":
        for line in [block.text] if block.text.startswith(("{\n", "[\n")) else block.text.splitlines():
            json.loads(line)
    elif block.language == "jsonnet":
        title = re.match(r"// (\S+\.jsonnet)\n", block.text)
        assert title, f"{block.name}: a config must begin with a comment that names its file"
        with shell.entered():
            Path(title[1]).write_text(block.text, encoding="utf-8")
            json.loads(evaluate_file(title[1], {}))


class TestBlocks:
    @pytest.mark.slow
    @pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: str(page.relative_to(CHECKOUT)))
    def test_they_run(self, page, tmp_path, monkeypatch, environment, logging_as_before):
        """Oracle: no error; a page's blocks run one after another, and may use what those before have made."""
        monkeypatch.delenv("ELMO_TASKS_CACHE", raising=False)
        work = make_home(tmp_path)
        variables = {
            "HOME": str(tmp_path),
            "ELMO_TASKS_DATA": str(tmp_path / "data"),
            "ELMO_TASKS_HOME": str(tmp_path / ".cache" / "elmo_tasks"),
            "ELMO_TASKS_BILM": str(TINY_BILM),
        }
        shell, names = Shell(work, variables), {}
        output = io.StringIO()
        for block in BLOCKS[page]:
            try:
                with contextlib.redirect_stdout(output):
                    run_block(block, shell, names)
            except (Exception, SystemExit) as error:
                pytest.fail(f"{block.name}: {type(error).__name__}: {error}\n{block.text}")

    def test_their_languages_are_known(self):
        """Oracle: the list by hand; a block of another language would never be run."""
        others = [block.name for blocks in BLOCKS.values() for block in blocks if block.language not in LANGUAGES]
        assert not others

    def test_no_command_is_outside_of_a_block(self):
        """Oracle: a page by hand; a command that is only indented would never be run."""
        page = "Then:\n\n    .venv/bin/python -m x\n    make y\n\n```bash\n    allennlp z\n```\n\n- python is fine.\n"
        assert indented_commands(page) == ["python -m x", "make y"]
        assert not [line for page in PAGES for line in indented_commands(page.read_text(encoding="utf-8"))]

    def test_few_are_not_run_and_each_says_why(self):
        """Oracle: the reasons and the bound by hand."""
        reasons = Counter(block.not_run for blocks in BLOCKS.values() for block in blocks if block.not_run)
        assert set(reasons) <= REASONS
        assert sum(reasons.values()) <= MOST_NOT_RUN

    def test_a_block_that_is_not_run_is_still_parsed(self):
        """Oracle: argparse's status for an option that there is not."""
        with pytest.raises(SystemExit, match="2"):
            check_command(["allennlp", "elmo-tables", "--table", "1", "--no-such-option"], "")

    def test_overrides_that_are_not_run_still_fit_their_config(self, environment):
        """Oracle: AllenNLP's refusal of a name that leads through a number; one that leads to a key is taken."""
        command = ["allennlp", "train", "training_configs/bilm.jsonnet", "-s", "output/x", "-o"]
        check_command([*command, '{"trainer.num_epochs": 1}'], "")
        with pytest.raises(ValueError, match="num_epochs"):
            check_command([*command, '{"trainer.num_epochs.x": 1}'], "")


class TestReadme:
    README = (CHECKOUT / "README.md").read_text(encoding="utf-8")

    def test_it_takes_two_minutes(self):
        """Oracle: the bound."""
        assert len(self.README.splitlines()) < 200

    def test_its_links_lead_somewhere(self):
        """Oracle: the files of the checkout, since it is read there; pages that are made are not among them."""
        links = [link for link in re.findall(r"\]\(([^)#\s]+)", self.README) if "://" not in link]
        assert links and not [link for link in links if not (CHECKOUT / link).exists()]


class TestSite:
    NAV = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]

    def test_every_page_is_in_the_navigation(self):
        """Oracle: the files of the folder and the pages that are made, once each."""
        named = re.findall(r"\S+\.md$", self.NAV, re.MULTILINE)
        files = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
        assert sorted(named) == sorted(files | set(hooks.PAGES))

    def test_links_lead_somewhere(self):
        """Oracle: the files of the folder and the pages that are made; `mkdocs build` checks the anchors too."""
        made = {DOCS / path for path in hooks.PAGES}
        broken = [
            f"{page.name}: {link}"
            for page in PAGES[1:]
            for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
            if "://" not in link and not (found := (page.parent / link).resolve()).exists() and found not in made
        ]
        assert not broken


class TestReference:
    def test_all_registered_names_are_shown(self, environment):
        """Oracle: the names in the calls of `register` in the source."""
        source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
        names = set(re.findall(r"^@\w+\.register\(\s*\"([\w-]+)\"", source, re.MULTILINE))
        page = hooks.registered_names()
        assert len(names) > 20 and all(f"| `{name}` |" in page for name in names)
        assert not re.search(r"\|  ?\|", page)

    def test_all_variables_are_shown(self):
        """Oracle: the names in the configs."""
        files = (CHECKOUT / "training_configs").rglob("*sonnet")
        names = {name for file in files for name in re.findall(r"\bELMO_TASKS_[A-Z_]+\b", file.read_text())}
        page = (CHECKOUT / "docs" / "installing.md").read_text()
        assert names and not {name for name in names if f"`{name}`" not in page}

    def test_all_commands_are_shown(self, environment):
        """Oracle: the names in the calls of `register`; each has its usage."""
        page = hooks.commands()
        source = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "commands").glob("*.py"))
        names = re.findall(r"Subcommand\.register\(\"([\w-]+)\"", source)
        assert names and all(f"usage: allennlp {name}" in page for name in names)
        assert "usage: python -m elmo_tasks embed" in page

    def test_all_arguments_of_templates_are_shown(self):
        """Oracle: those of one template, by hand."""
        page = hooks.configs()
        part = page.partition("## pos.libsonnet")[2].partition("\n## ")[0]
        names = ["`layer`", "`bilm`", "`transformer`", "`tags`"]
        assert [line.split("|")[1].strip() for line in part.splitlines()[4:] if line] == names

    def test_fields_are_shown_as_arguments(self):
        """Oracle: a named tuple and a function."""
        assert "\nNeighbor(words: list[str], position: int, similarity: float)\n" in hooks.api_page("analysis")
        assert "\nembed_file(" in hooks.api_page("embed")

    def test_docstrings_become_markdown(self):
        """Oracle: the page by hand."""
        docstring = "Does.\n\n# Parameters\n\nx : `int`\n    A number.\n\n# Returns\n\n`int`\n    One."
        page = "Does.\n\n**Parameters**\n\n- `x`: `int`\n\n    A number.\n\n**Returns**\n\n- `int`\n\n    One."
        assert hooks.rendered(docstring) == page

    def test_pages_are_the_same_every_time(self, environment):
        """Oracle: a second call; no address of an object in any page."""
        for page in hooks.PAGES.values():
            text = page()
            assert text == page() and not re.search(r" at 0x[0-9a-f]+", text)
