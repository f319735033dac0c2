"""Packages that stand in for AllenNLP, torch and others, whose imports take no time."""

from pathlib import Path


def write_package(folder: Path, name: str, version: str) -> None:
    """Writes a package that has nothing but a version, where AllenNLP has it."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("from .version import VERSION\n")
    (folder / name / "version.py").write_text(f"VERSION = {version!r}\n")


def write_torch(folder: Path) -> None:
    """
    Writes a torch that has a sum, and calls our extension at the end of its import, as torch does: an error of the
    extension is an error of the import.
    """
    (folder / "torch.py").write_text(
        "class ones:\n"
        "    def __init__(self, n):\n"
        "        self.n = n\n"
        "    def sum(self):\n"
        "        return self\n"
        "    def item(self):\n"
        "        return float(self.n)\n"
        "import elmo_tasks.compat\n"
        "elmo_tasks.compat.install()\n"
    )
