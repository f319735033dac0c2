"""Packages that stand in for AllenNLP."""

from pathlib import Path


def write_package(folder: Path, name: str, version: str) -> None:
    """Writes a package that has nothing but a version, where AllenNLP has it."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("from .version import VERSION\n")
    (folder / name / "version.py").write_text(f"VERSION = {version!r}\n")
