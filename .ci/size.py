"""Prints the sizes of the package and tests, and fails if one is more than 2% above its value in `.ci/size.json`."""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def measured() -> dict[str, float]:
    """Lines of the package and of the tests, and `raise` statements per 1,000 non-blank lines of the package."""
    texts = {name: [path.read_text() for path in (ROOT / name).rglob("*.py")] for name in ("elmo_tasks", "tests")}
    lines = {f"{name} lines": sum(text.count("\n") for text in of_name) for name, of_name in texts.items()}
    package = texts["elmo_tasks"]
    n_raised = sum(isinstance(node, ast.Raise) for text in package for node in ast.walk(ast.parse(text)))
    n_written = sum(bool(line.strip()) for text in package for line in text.splitlines())
    return {**lines, "raise per 1,000 lines": round(1000 * n_raised / n_written, 1)}


if __name__ == "__main__":
    allowed = json.loads((ROOT / ".ci" / "size.json").read_text())
    now = measured()
    for name, value in now.items():
        print(f"{name:22} {value:10,} (allowed: {allowed[name]:,} and 2%)")
    if grown := [name for name, value in now.items() if value > 1.02 * allowed[name]]:
        sys.exit(f"{', '.join(grown)} grew: delete something, or raise .ci/size.json and say why in the commit")
