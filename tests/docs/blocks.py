"""The fenced blocks of a page, and the reasons why some are not run."""

import re
from pathlib import Path
from typing import NamedTuple

from tests.paths import CHECKOUT

DOCS = CHECKOUT / "docs"
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PAGES += sorted((CHECKOUT / "allennlp_today").glob("*.md"))

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"<!-- output -->\s*$")
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$")


class Block(NamedTuple):
    """
    A block, the line of its fence, the reason if it is not run, and whether it is the output of the
    block before it, which a comment says.
    """

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None
    is_output: bool

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(CHECKOUT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        reason, is_output = _NOT_RUN.search(before), _OUTPUT.search(before) is not None
        indent, language, content = fence.groups()
        lines = [line.removeprefix(indent) for line in content.splitlines()]
        line = text.count("\n", 0, fence.start()) + 1
        blocks.append(
            Block(page, line, language, "\n".join(lines) + "\n", reason and reason[1], is_output)
        )
    return blocks
