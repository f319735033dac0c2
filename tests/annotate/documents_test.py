"""What is a document of a corpus, and which names, texts and columns does it have?"""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.annotate.documents import Corpus, Document

PAIR = ("premise", "hypothesis")
LINES = "".join(json.dumps({"id": f"p{n}", "text": text}) + "\n" for n, text in enumerate(["Ann sang.", "No."]))
TABLE = 'id,title,text\n7,One,"Ann, 3,\nsang."\n,Two,No.\n'
# The corpus (a file, or the files of a folder), arguments of `Corpus`, and its documents.
CORPORA: dict[str, tuple[dict[str, str | bytes], dict[str, Any], list[Any]]] = {
    "lines": ({"a.txt": "Ann\r\n\nBob"}, {}, [("1", "Ann"), ("2", ""), ("3", "Bob")]),
    "text in brackets": ({"a.txt": "[[Berlin]] is big.\n"}, {}, [("1", "[[Berlin]] is big.")]),
    "text like JSON": ({"a.txt": '{"a": 1}\n'}, {"input_format": "text"}, [("1", '{"a": 1}')]),
    "text like a table": ({"a.csv": "a,b\n"}, {"input_format": "text"}, [("1", "a,b")]),
    "files": ({"b.txt": "Bob", "a/c.txt": "Ann"}, {}, [("a/c.txt", "Ann"), ("b.txt", "Bob")]),
    "line ends": (
        {"a.txt": b"Ann\r\nsang.\r\n", "b.txt": "\rx"},
        {},
        [("a.txt", "Ann\r\nsang.\r\n"), ("b.txt", "\rx")],
    ),
    # As many characters as in the file.
    "a mark": ({"a.txt": b"\xef\xbb\xbfAnn", "b.txt": "Bob"}, {}, [("a.txt", " Ann"), ("b.txt", "Bob")]),
    "UTF-16": ({"a.txt": "Ann\r\nsang".encode("utf-16"), "b.txt": ""}, {}, [("a.txt", "Ann\r\nsang"), ("b.txt", "")]),
    "hidden files": ({"a.txt": "Ann", "a.txt~": "An", ".DS_Store": b"\xff", ".b/a.txt": "x"}, {}, [("a.txt", "Ann")]),
    "glob": ({"a.txt": "Ann", "a.ann": "T1"}, {"glob": "*.txt"}, [("a.txt", "Ann")]),
    "numbers": ({"a.1": "Ann", "a.2": "Bob"}, {}, [("a.1", "Ann"), ("a.2", "Bob")]),
    "all as texts": ({"a.json": "{", "b.md": "b"}, {"input_format": "text"}, [("a.json", "{"), ("b.md", "b")]),
    "JSON lines": ({"a.jsonl": LINES}, {}, [("p0", "Ann sang."), ("p1", "No.")]),
    "other suffixes": ({"a.NDJSON": LINES}, {}, [("p0", "Ann sang."), ("p1", "No.")]),
    "JSON lines named JSON": ({"a.json": LINES}, {}, [("p0", "Ann sang."), ("p1", "No.")]),
    "JSON": ({"a.json": '[{"text": "Ann"},\n "Bob"]'}, {}, [("1", "Ann"), ("2", "Bob")]),
    "JSON lines of any name": ({"a.txt": LINES}, {"input_format": "jsonl"}, [("p0", "Ann sang."), ("p1", "No.")]),
    "a folder of tables": (
        {"1.jsonl": LINES, "2.jsonl.gz": gzip.compress(b'\n{"text": "Bob"}')},
        {},
        [("p0", "Ann sang."), ("p1", "No."), ("2.jsonl.gz:2", "Bob")],
    ),
    "null": ({"a.jsonl": '{"id": null, "text": null}\n{"id": 3, "text": "b"}'}, {}, [("1", ""), ("3", "b")]),
    "half an emoji": ({"a.jsonl": r'{"id": "\ud83d", "text": "a \ud83d"}'}, {}, [("\ufffd", "a \ufffd")]),
    "CSV": ({"a.csv": TABLE}, {"keep": ["title"]}, [("7", "Ann, 3,\nsang.", "One"), ("2", "No.", "Two")]),
    "CSV of Excel": ({"a.csv": b"\xef\xbb\xbfid;text\r\n1;a,b\r\n"}, {}, [("1", "a,b")]),
    "TSV": ({"a.tsv": "nr\ttext\n1\ta\n"}, {"id_column": "nr", "keep": ["all"]}, [("1", "a")]),
    "all columns": (
        {"a.csv": TABLE},
        {"text_columns": ["title"], "keep": ["all"]},
        [("7", "One", "Ann, 3,\nsang."), ("2", "Two", "No.")],
    ),
    "pairs": ({"a.csv": "b,a\n1,2\n"}, {"inputs": PAIR, "text_columns": ["a", "b"]}, [("1", "2", "1")]),
}


@pytest.fixture
def corpus(tmp_path: Path):
    def write(files: dict[str, str | bytes], arguments: dict[str, Any]) -> Corpus:
        for name, content in files.items():
            (tmp_path / "texts" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "texts" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        path = tmp_path / "texts" / (next(iter(files)) if len(files) == 1 else "")
        return Corpus(path, arguments.pop("inputs", ("text",)), **arguments)

    return write


@pytest.mark.parametrize("kind", CORPORA)
def test_documents_have_names_texts_and_columns(corpus, kind):
    files, arguments, expected = CORPORA[kind]
    documents = list(corpus(files, dict(arguments)).documents())
    assert [(name, *texts, *kept.values()) for name, texts, kept in documents] == expected


def test_columns_of_parquet_are_kept(corpus, tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"text": "Ann", "year": 1999}, {"text": None, "year": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    found = Corpus(tmp_path / "a.parquet", ("text",), keep=["year"])
    assert found.survey() == (2, {"year"})
    assert list(found.documents()) == [Document("1", ("Ann",), {"year": 1999}), Document("2", ("",), {"year": None})]


def test_a_long_cell_is_read(corpus):
    long = "word " * 100_000
    (document,) = corpus({"a.csv": f"text\n{long}\n"}, {}).documents()
    assert document.texts == (long,) and csv.field_size_limit() > len(long)


def test_a_repeated_name_is_logged(corpus, caplog):
    content = '{"id": 3, "text": "a"}\n{"id": "3", "text": "b"}\n{"id": 4, "text": "c"}'
    assert corpus({"a.jsonl": content}, {}).survey() == (3, set())
    assert "1 names are repeated, such as '3'" in caplog.text


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        (
            {"a.csv": "title,text\n1,2\n"},
            {"text_columns": ["body"]},
            "expected texts as body, got .* title, text: .*a.csv",
        ),
        ({"a.csv": "title,text\n1,2\n"}, {"keep": ["year"]}, "expected one of the columns title, text, got 'year'"),
        ({"a.csv": "title,text\n1,2,3\n"}, {}, "expected 2 columns, .* got 3: .*a.csv, line 2"),
        ({"a.tsv": 'text\n"a" b\n'}, {}, "a.tsv, line 2"),
        ({"a.jsonl": '{"text": 1}\n'}, {}, r"expected texts as text, got \[1\]: .*a.jsonl, text 1"),
        ({"a.txt": "a\n"}, {"inputs": PAIR}, "expected texts as premise and hypothesis, .*a.txt, text 1"),
        ({"a.txt": "a", "a.ann": "T1"}, {}, "expected files of one kind, got 1 .ann, 1 .txt: .*--glob"),
        ({"a.txt": "a", "b.jsonl": LINES}, {}, "expected files of one kind, got 1 .txt, 1 jsonl"),
        ({"a.txt": ""}, {}, "expected texts, got none"),
        ({"a.txt": "a", "b.txt": "b"}, {"glob": "*.md"}, "expected texts, got none"),
        ({"a.txt": '[{"text": "a"}]\n'}, {}, "looks like JSON .--input-format jsonl"),
        ({"a.tar.gz": b"a"}, {}, "looks like an archive .unpack it first"),
    ],
)
def test_an_error_names_what_exists(corpus, files, arguments, message):
    with pytest.raises(ValueError, match=message):
        corpus(files, dict(arguments)).survey()
