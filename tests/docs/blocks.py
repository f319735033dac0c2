"""The fenced blocks of a page, and the reasons why some are not run."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.paths import CHECKOUT

DOCS = CHECKOUT / "docs"
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PAGES += sorted((CHECKOUT / "allennlp_today").glob("*.md"))

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_OUTPUT = re.compile(r"<!-- output -->\s*$")
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->\s*$")


@dataclass(frozen=True, kw_only=True)
class Block:
    page: Path
    # The number of the line with the fence.
    line: int
    language: str
    text: str
    # The reason, if the block is not run.
    not_run: str | None
    # Whether a comment says that it is the output of the block before it.
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
        reason = _NOT_RUN.search(before)
        indent, language, content = fence.groups()
        lines = [line.removeprefix(indent) for line in content.splitlines()]
        block = Block(
            page=page,
            line=before.count("\n") + 1,
            language=language,
            text="\n".join(lines) + "\n",
            not_run=reason[1] if reason else None,
            is_output=_OUTPUT.search(before) is not None,
        )
        blocks.append(block)
    return blocks
