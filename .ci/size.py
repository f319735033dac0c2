"""Counts `raise` and long functions in the packages, and fails if a number is above `.ci/size.json`."""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT / "elmo_tasks", ROOT / "allennlp_today" / "allennlp_today")


def measured() -> dict[str, float]:
    """Of both packages, `raise` per 1,000 non-blank lines, and the functions of 60 lines or more."""
    texts = [path.read_text() for package in PACKAGES for path in package.rglob("*.py")]
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    n_raised = sum(isinstance(node, ast.Raise) for node in nodes)
    n_written = sum(bool(line.strip()) for text in texts for line in text.splitlines())
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    n_long = sum(function.end_lineno - function.lineno >= 60 for function in functions)
    return {"raise per 1,000 lines": round(1000 * n_raised / n_written, 1), "functions over 60 lines": n_long}


if __name__ == "__main__":
    allowed = json.loads((ROOT / ".ci" / "size.json").read_text())
    now = measured()
    for name, value in now.items():
        print(f"{name:24} {value:6} (allowed: {allowed[name]})")
    if grown := [name for name, value in now.items() if value > allowed[name]]:
        sys.exit(f"{', '.join(grown)} grew: accept more input, split a function, or raise .ci/size.json and say why")
