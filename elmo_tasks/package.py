"""A wheel of a trained model. `TrainedTask`, spaCy's components and `annotate` find an installed one by its name."""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from elmo_tasks.arguments import add_trust, trust_of
from elmo_tasks.files.json_files import file_digest
from elmo_tasks.trained_models import MODEL_GROUP, licence_of, wheel_name
from elmo_tasks.version import __version__

__all__ = ["DESCRIPTION", "add_arguments", "package", "package_model"]

DESCRIPTION = "Make a wheel of a trained model: after `pip install WHEEL`, TrainedTask(NAME) finds it."

_PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "{distribution}"
version = "{version}"
description = {title}
readme = "{module}/README.md"
license = {{text = {license}}}
dependencies = ["elmo_tasks[allennlp]>={requires}"]

[project.entry-points."{group}"]
{name} = "{module}"

[tool.setuptools]
packages = ["{module}"]
package-data = {{"{module}" = ["*", "*/*"]}}
"""


def package_model(
    model: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    name: str | None = None,
    version: str = __version__,
    packages: Sequence[str] = (),
    trusted: bool = False,
) -> Path:
    """
    Writes a wheel with the model's files and its card into a folder, and returns its path.

    # Parameters

    model, packages, trusted
        As in `TrainedTask`.
    name
        What `TrainedTask` calls the installed model: letters, digits and `_`. By default, the model's own name.
    version
        The version of the wheel. It requires the version of elmo_tasks that wrote it, or later.
    """
    from elmo_tasks import TrainedTask

    task = TrainedTask(model, packages=packages, trusted=trusted)
    name = name or re.sub(r"\W", "_", task.name)
    distribution = wheel_name(name)
    with TemporaryDirectory() as temporary:
        project = Path(temporary)
        task.save(project / distribution)
        (project / distribution / "__init__.py").touch()
        card = (project / distribution / "README.md").read_text("utf-8")
        title = re.search(r"^# (.+)", card, re.MULTILINE)
        settings = {
            "distribution": distribution,
            "module": distribution,
            "name": name,
            "version": version,
            "requires": __version__,
            "group": MODEL_GROUP,
            "title": json.dumps(title[1] if title else name),
            "license": json.dumps(licence_of(project / distribution) or "see the card"),
        }
        (project / "pyproject.toml").write_text(_PROJECT.format(**settings), "utf-8")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        try:
            subprocess.run([*command, "--wheel-dir", Path(folder), project], check=True)
        except subprocess.CalledProcessError:
            raise RuntimeError("pip could not build the wheel; it needs `pip install setuptools wheel`") from None
    return Path(folder, f"{distribution}-{version}-py3-none-any.whl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", help="a name, an archive, or the folder of a run, as in TrainedTask")
    add("folder", type=Path, help="where the wheel is written")
    add("--name", help="what TrainedTask calls it (default: the model's own name)")
    add_trust(parser)
    add("--version", default=__version__, help="the version of the wheel (default: %(default)s)")


def package(arguments: argparse.Namespace) -> None:
    options = {"name": arguments.name, "version": arguments.version}
    wheel = package_model(arguments.model, arguments.folder, **options, **trust_of(arguments))
    print(f"wrote {wheel}: {wheel.stat().st_size:,} bytes, SHA-256 {file_digest(wheel)}")
    name = wheel.name.partition("-")[0].removeprefix(wheel_name(""))
    print(f"Next: pip install {wheel}, and then TrainedTask({name!r})")
