"""Parses Jsonnet files: `python .ci/check_jsonnet.py FILE...`. Prints the errors of those that are malformed."""

import sys
from pathlib import Path

import _jsonnet


def error_of(path: Path) -> str | None:
    # Behind a function that is not called, the file is parsed but needs no arguments and no external variables.
    source = f"local parsed() = ({path.read_text(encoding='utf-8')}\n); true"
    try:
        _jsonnet.evaluate_snippet(str(path), source)
    except RuntimeError as error:
        return str(error)
    return None


if __name__ == "__main__":
    errors = [error for name in sys.argv[1:] if (error := error_of(Path(name)))]
    sys.exit("\n".join(errors) if errors else 0)
