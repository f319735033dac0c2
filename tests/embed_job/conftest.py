"""A small text, and jobs with the tiny biLM."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmo_tasks.embed_job import EmbedOptions, EmbedReport, embed_file
from tests.paths import TINY_BILM

# Blank lines, a line twice, one with a slash, one that is not ASCII, and white space of many kinds.
LINES = ["The cat sat .", "", "a/b c / d", "Ja", "The cat sat .", " \t ", "«  Ça\tva ? »", "0", "one two three", ""]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A file with `LINES`."""
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture
def tiny_bilm(fixtures_root: Path) -> str:
    return str(TINY_BILM)


@pytest.fixture
def embed(text: Path, tmp_path: Path, tiny_bilm: str) -> Callable[..., EmbedReport]:
    """Embeds the text in parts of three lines: `embed("out.h5", {"layers": "all"}, resume=True)`."""

    def run(name: str, options: dict[str, Any] | None = None, **arguments: Any) -> EmbedReport:
        made = EmbedOptions(**{"bilm": tiny_bilm, "part_lines": 3, **(options or {})})
        return embed_file(text, tmp_path / name, made, **{"show_progress": False, **arguments})

    return run


def content_of_hdf5(path: Path) -> dict[str, tuple[Any, bytes]]:
    """The content of a file, to the bit."""
    with h5py.File(path) as file:
        content = {name: (data.shape, np.asarray(data[()]).tobytes()) for name, data in file.items() if name.isdigit()}
        content["sentences"] = (None, b"\n".join(file["sentences"][:]))
        content["sentence_to_index"] = (None, file["sentence_to_index"][0])
        content["job"] = (None, file.attrs["elmo_tasks"].encode())
    return content
