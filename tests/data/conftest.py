from pathlib import Path

import pytest


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file to write, with an ending that the reader of folders of OntoNotes takes too."""
    return tmp_path / "file.gold_conll"
