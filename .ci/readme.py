"""
Runs the first blocks of README in an empty folder, and compares what they print:
`python .ci/readme.py 3`. Blocks that install packages are left out. The folder has the trained
models, which a wheel does not contain.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
# What may precede a block, its language and its lines.
BLOCK = re.compile(r"(?:<!-- (.*?) -->\n)?```(\w+)\n(.*?)```", re.DOTALL)


def main() -> None:
    n_left = int(sys.argv[1])
    printed = ""
    namespace: dict[str, Any] = {}
    os.chdir(tempfile.mkdtemp())
    for model in (README.parent / "models").iterdir():
        shutil.copytree(model, model.name)
    for note, language, block in BLOCK.findall(README.read_text("utf-8")):
        if note == "output":
            assert printed == block, f"expected {block}, got {printed}"
        elif note or language == "text":
            continue
        elif n_left == 0:
            break
        else:
            n_left -= 1
            print(block, flush=True)
            output = io.StringIO()
            if language == "python":
                with contextlib.redirect_stdout(output):
                    exec(block, namespace)
            else:
                subprocess.run(["bash", "-ec", block], check=True)
            printed = output.getvalue()
            print(printed, flush=True)


if __name__ == "__main__":
    main()
