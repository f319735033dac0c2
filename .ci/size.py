"""Names the functions of more than 60 lines in the packages, and fails if there are any."""

import ast
import sys
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "elmo_tasks", ROOT / "allennlp_today" / "allennlp_today")
MAX_LINES = 60


def long_functions(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = node.end_lineno - node.lineno + 1
            if n_lines > MAX_LINES:
                found.append(f"{path.relative_to(ROOT)}, line {node.lineno}: {node.name} has {n_lines} lines")
    return found


if __name__ == "__main__":
    files = chain.from_iterable(sorted(package.rglob("*.py")) for package in PACKAGES)
    if found := list(chain.from_iterable(map(long_functions, files))):
        sys.exit("\n".join([*found, f"expected functions of at most {MAX_LINES} lines"]))
