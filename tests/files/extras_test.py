"""A missing library is an error that says what to install."""

import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks.corpora.annotate import annotate_file
from elmo_tasks.corpora.corpus import Corpus
from elmo_tasks.corpora.embed import EmbedOptions, embed_file
from elmo_tasks.files.jobs import Job, PartsOutput
from elmo_tasks.text import words_of_text
from elmo_tasks.text.formats import conllu_sentences
from elmo_tasks.vectors.pretrained import hub_folder
from tests.paths import TINY_BILM

BILM = str(TINY_BILM)


def table(folder: Path, content: bytes) -> Corpus:
    (folder / "table").write_bytes(content)
    return Corpus(folder / "table")


def workbook() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    return file.getvalue()


ENTRY_POINTS: list[tuple[str, str, Callable[[Path], Any]]] = [
    (
        "pyarrow",
        "parquet",
        lambda folder: embed_file(folder / "a.txt", folder / "a.parquet", EmbedOptions(BILM)),
    ),
    (
        "pyarrow",
        "parquet",
        lambda folder: annotate_file(["ner"], folder / "a.txt", folder / "a.parquet"),
    ),
    (
        "openpyxl",
        "tables",
        lambda folder: annotate_file(["ner"], folder / "a.txt", folder / "a.xlsx"),
    ),
    ("pyarrow.parquet", "parquet", lambda folder: table(folder, b"PAR1").survey()),
    ("openpyxl", "tables", lambda folder: table(folder, workbook()).survey()),
    (
        "ray",
        "ray",
        lambda folder: Job(folder / "x", {}, 1, 1, "", False).run(
            [1], len, PartsOutput(), workers=None, ray="local"
        ),
    ),
    ("spacy", "spacy", lambda folder: words_of_text("a", "ga")),
    ("sklearn.base", "sklearn", lambda folder: elmo_tasks.ElmoVectorizer),
    ("huggingface_hub", "hub", lambda folder: hub_folder("org/name", [])),
    ("conllu", "allennlp", lambda folder: list(conllu_sentences(folder / "a.conllu"))),
    ("allennlp.models", "-r allennlp.txt", lambda folder: elmo_tasks.TrainedTask),
]


@pytest.mark.parametrize(("library", "extra", "use"), ENTRY_POINTS)
def test_a_missing_library_names_its_extra(monkeypatch, tmp_path, library, extra, use):
    (tmp_path / "a.txt").write_text("a b\n")
    monkeypatch.setitem(sys.modules, library, None)
    for name in ("elmo_tasks.vectors.sklearn_vectorizer", "elmo_tasks.predictors.trained_task"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"{library} is not installed: .*{extra}"):
        use(tmp_path)
