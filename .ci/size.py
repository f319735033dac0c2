"""Prints the sizes of the package and tests, and fails if one is more than 2% above its value in `.ci/size.json`."""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = {
    "elmo_tasks": "elmo_tasks",
    "tests": "tests",
    "allennlp_today": "allennlp_today/allennlp_today",
    "its tests": "allennlp_today/tests",
}


def measured() -> dict[str, float]:
    """Lines of both packages and their tests; of elmo_tasks, `raise` per 1,000 non-blank lines and long functions."""
    texts = {name: [path.read_text() for path in (ROOT / folder).rglob("*.py")] for name, folder in PARTS.items()}
    lines = {f"{name} lines": sum(text.count("\n") for text in of_name) for name, of_name in texts.items()}
    package = texts["elmo_tasks"]
    nodes = [node for text in package for node in ast.walk(ast.parse(text))]
    n_raised = sum(isinstance(node, ast.Raise) for node in nodes)
    n_written = sum(bool(line.strip()) for text in package for line in text.splitlines())
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    n_long = sum(function.end_lineno - function.lineno >= 60 for function in functions)
    return {**lines, "raise per 1,000 lines": round(1000 * n_raised / n_written, 1), "functions over 60 lines": n_long}


if __name__ == "__main__":
    allowed = json.loads((ROOT / ".ci" / "size.json").read_text())
    now = measured()
    for name, value in now.items():
        print(f"{name:22} {value:10,} (allowed: {allowed[name]:,} and 2%)")
    if grown := [name for name, value in now.items() if value > 1.02 * allowed[name]]:
        sys.exit(f"{', '.join(grown)} grew: delete something, or raise .ci/size.json and say why in the commit")
