"""What is a document of a corpus, and which names, texts and columns does it have?"""

import csv
import gzip
import json
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from elmo_tasks.corpora.corpus import Corpus, Document
from elmo_tasks.files.tables import TableOptions

PAIR = ("premise", "hypothesis")
LINES = '{"id": "p0", "text": "Ann sang."}\n{"id": "p1", "text": "No."}\n'
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
    "a mark": (
        {"a.txt": b"\xef\xbb\xbfAnn", "b.txt": "Bob"},
        {},
        [("a.txt", " Ann"), ("b.txt", "Bob")],
    ),
    "UTF-16": (
        {"a.txt": "Ann\r\nsang".encode("utf-16"), "b.txt": ""},
        {},
        [("a.txt", "Ann\r\nsang"), ("b.txt", "")],
    ),
    "hidden files": (
        {"a.txt": "Ann", "a.txt~": "An", ".DS_Store": b"\xff", ".b/a.txt": "x", "_SUCCESS": ""},
        {},
        [("a.txt", "Ann")],
    ),
    "glob": ({"a.txt": "Ann", "a.ann": "T1"}, {"glob": "*.txt"}, [("a.txt", "Ann")]),
    "all as texts": (
        {"a.json": "{", "b.md": "b"},
        {"input_format": "text"},
        [("a.json", "{"), ("b.md", "b")],
    ),
    "brackets in a text": ({"a.txt": "['quoted']"}, {}, [("1", "['quoted']")]),
    "suffixes of texts": ({"a.txt": "Ann", "b.md": "b"}, {}, [("a.txt", "Ann"), ("b.md", "b")]),
    "JSON lines": ({"a.jsonl": LINES}, {}, [("p0", "Ann sang."), ("p1", "No.")]),
    "other suffixes": ({"a.NDJSON": LINES}, {}, [("p0", "Ann sang."), ("p1", "No.")]),
    "JSON lines named JSON": ({"a.json": LINES}, {}, [("p0", "Ann sang."), ("p1", "No.")]),
    "JSON": ({"a.json": '[{"text": "Ann"},\n "Bob"]'}, {}, [("1", "Ann"), ("2", "Bob")]),
    "JSON lines of any name": (
        {"a.txt": LINES},
        {"input_format": "jsonl"},
        [("p0", "Ann sang."), ("p1", "No.")],
    ),
    "a folder of tables": (
        {"1.jsonl": LINES, "2.jsonl.gz": gzip.compress(b'\n{"text": "Bob"}')},
        {},
        [("p0", "Ann sang."), ("p1", "No."), ("2.jsonl.gz:2", "Bob")],
    ),
    "null": (
        {"a.jsonl": '{"id": null, "text": null}\n{"id": 3, "text": "b"}'},
        {},
        [("1", ""), ("3", "b")],
    ),
    "half an emoji": (
        {"a.jsonl": r'{"id": "\ud83d", "text": "a \ud83d"}'},
        {},
        [("\ufffd", "a \ufffd")],
    ),
    "CSV": (
        {"a.csv": TABLE},
        {"keep": ["title"]},
        [("7", "Ann, 3,\nsang.", "One"), ("2", "No.", "Two")],
    ),
    "CSV of Excel": ({"a.csv": b"\xef\xbb\xbfid;text\r\n1;a,b\r\n"}, {}, [("1", "a,b")]),
    "TSV": ({"a.tsv": "nr\ttext\n1\ta\n"}, {"id_column": "nr", "keep": ["all"]}, [("1", "a")]),
    "all columns": (
        {"a.csv": TABLE},
        {"text_columns": ["title"], "keep": ["all"]},
        [("7", "One", "Ann, 3,\nsang."), ("2", "Two", "No.")],
    ),
    "quotation marks of a text": (
        {"a.tsv": 'id\ttext\n1\t"Tim Cook spoke first.\n2\tAnn left.\n3\tAnn said so."\n'},
        {},
        [("1", '"Tim Cook spoke first.'), ("2", "Ann left."), ("3", 'Ann said so."')],
    ),
    "quotation marks of CSV": (
        {"a.tsv": 'id\ttext\n1\t"a\n""b"""\n'},
        {"input_format": "csv"},
        [("1", 'a\n"b"')],
    ),
    "NA is a text": ({"a.csv": "text\nNA\nnull\n"}, {}, [("1", "NA"), ("2", "null")]),
    "a delimiter in a name": (
        {"a.csv": '"title, long";text\na;b\n'},
        {"keep": ["all"]},
        [("1", "b", "a")],
    ),
    "a delimiter of Excel": ({"a.csv": "sep=;\r\nid;text\r\n1;a,b\r\n"}, {}, [("1", "a,b")]),
    "a delimiter in quotation marks": (
        {"a.csv": '"sep=;"\r\nid;text\r\n1;a,b\r\n'},
        {},
        [("1", "a,b")],
    ),
    "lines above the header": (
        {"a.csv": "\n \nid;text\n1;a,b\n"},
        {},
        [("1", "a,b")],
    ),
    "a header below a title": (
        {"a.csv": 'The "title, unclosed\n\nid;text\n1;a,b\n'},
        {"table": TableOptions(header_row=3)},
        [("1", "a,b")],
    ),
    "a header below a title and a delimiter": (
        {"a.csv": "sep=,\nThe;title\nid,text\n1,a\n"},
        {"table": TableOptions(header_row=3)},
        [("1", "a")],
    ),
    "a header of TSV": (
        {"a.tsv": "The title\nid\ttext\n1\ta\n"},
        {"table": TableOptions(header_row=2)},
        [("1", "a")],
    ),
    "no header": (
        {"a.csv": "0,a\n4,b\n"},
        {"table": TableOptions(header_row=0), "text_columns": ["2"], "id_column": "1"},
        [("0", "a"), ("4", "b")],
    ),
    "folders of Hive": (
        {
            "year=2020/country=a%2Fb/1.csv": "text\na\n",
            "year=2021/country=__HIVE_DEFAULT_PARTITION__/1.csv": "text\nb\n",
        },
        {"keep": ["year", "country"]},
        [
            ("year=2020/country=a%2Fb/1.csv:1", "a", "2020", "a/b"),
            ("year=2021/country=__HIVE_DEFAULT_PARTITION__/1.csv:1", "b", "2021", None),
        ],
    ),
    "folders of Hive with texts": (
        {"year=2020/a.txt": "Ann", "year=2021/a.txt": "Bob"},
        {"keep": ["all"]},
        [("year=2020/a.txt", "Ann", "2020"), ("year=2021/a.txt", "Bob", "2021")],
    ),
    "a column and a folder of one name": (
        {"year=2020/a.csv": "text,year\na,1\n", "year=2021/a.csv": "text\nb\n"},
        {"keep": ["year"]},
        [("year=2020/a.csv:1", "a", "1"), ("year=2021/a.csv:1", "b", "2021")],
    ),
    "names with spaces": ({"a.csv": "Id, Text,n \n7,a,1\n"}, {"keep": ["N"]}, [("7", "a", "1")]),
    "the index of pandas": (
        {"a.csv": ",text\n0,a\n1,b\n"},
        {"keep": ["all"]},
        [("1", "a"), ("2", "b")],
    ),
    "commas at the end": ({"a.csv": "id,text\n7,a,,\n\n8,b\n"}, {}, [("7", "a"), ("8", "b")]),
    "a repeated column that is not used": ({"a.csv": "a,text,a\n1,b,2\n"}, {}, [("1", "b")]),
    "JSON of any name": ({"a.txt": '[{"text": "Ann"}]'}, {}, [("1", "Ann")]),
    "NaN": (
        {"a.jsonl": '{"text": NaN, "id": NaN, "n": [NaN, 1]}'},
        {"keep": ["n"]},
        [("1", "", [None, 1])],
    ),
    "words": (
        {"a.jsonl": '{"text": ["New York", "."]}\n{"text": "a b"}'},
        {"of_sentences": True},
        [("1", ["New York", "."]), ("2", "a b")],
    ),
    "lines of files": (
        {"a.txt": "a\nb\n", "b.txt": "c"},
        {"of_sentences": True},
        [("a.txt:1", "a"), ("a.txt:2", "b"), ("b.txt:1", "c")],
    ),
    "pairs": (
        {"a.csv": "b,a\n1,2\n"},
        {"inputs": PAIR, "text_columns": ["a", "b"]},
        [("1", "2", "1")],
    ),
}


@pytest.fixture
def corpus(tmp_path: Path):
    def write(files: dict[str, str | bytes], arguments: dict[str, Any]) -> Corpus:
        folder = tmp_path / "texts"
        for name, content in files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        # A single file is the corpus, else the folder.
        path = file if len(files) == 1 else folder
        return Corpus(path, **arguments)

    return write


@pytest.mark.parametrize("name", CORPORA)
def test_documents_have_names_texts_and_columns(corpus, name):
    files, arguments, expected = CORPORA[name]
    documents = []
    for document in corpus(files, arguments).documents():
        documents.append((document.name, *document.texts, *document.kept.values()))
    assert documents == expected


def test_columns_of_parquet_are_kept(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"text": "Ann", "year": 1999}, {"text": None, "year": None}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    corpus = Corpus(tmp_path / "a.parquet", keep=["year"])
    assert corpus.survey() == (2, {"year": "int64"})
    assert list(corpus.documents()) == [
        Document("1", ("Ann",), {"year": 1999}),
        Document("2", ("",), {"year": None}),
    ]


def test_a_long_cell_is_read(corpus):
    long = "word " * 100_000
    (document,) = corpus({"a.csv": f"text\n{long}\n"}, {}).documents()
    assert document.texts == (long,) and csv.field_size_limit() > len(long)


def test_a_repeated_name_is_logged(corpus, caplog):
    content = '{"id": 3, "text": "a"}\n{"id": "3", "text": "b"}\n{"id": 4, "text": "c"}'
    assert corpus({"a.jsonl": content}, {}).survey() == (3, {})
    assert "1 names are repeated, such as '3'" in caplog.text


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        (
            {"a.csv": "title,text\n1,2\n"},
            {"text_columns": ["body"]},
            "expected texts as body, got .* title, text: .*a.csv",
        ),
        (
            {"a.csv": "title,text\n1,2\n"},
            {"keep": ["year"]},
            "expected one of the columns title, text, got 'year'",
        ),
        ({"a.csv": "title,text\n1,2,3\n"}, {}, "expected 2 columns, .* got 3: .*a.csv, line 2"),
        ({"a.csv": 'text\n"a" b\n'}, {}, "a.csv, line 2"),
        (
            {"a.csv": 'id,text\n1,"a\nb"\n2,c,"d\ne"\n'},
            {},
            "expected 2 columns, .* got 3: .*a.csv, line 4",
        ),
        ({"a.csv": 'text\n"a\nb'}, {}, "a.csv, line 2"),
        (
            {"a.csv": "id,text,text\n1,a,b\n"},
            {},
            "expected one column 'text', got several: .*a.csv, text 1",
        ),
        (
            {"a.jsonl": '{"text": "a", "text": "b"}\n'},
            {},
            "expected one column 'text', got several",
        ),
        (
            {"a.csv": "id,a,text,a\n1,a,b,c\n"},
            {"keep": ["all"]},
            "expected one column 'a', got several",
        ),
        (
            {"a.csv": b"id,text\n1,\xdf\n"},
            {},
            "expected UTF-8, got byte 0xdf: .*a.csv, line 2, byte 3$",
        ),
        (
            {"a.csv": "text\na <S> b\n"},
            {"of_sentences": True},
            "without <S> and </S>, got .*a.csv, text 1",
        ),
        (
            {"a.jsonl": '{"text": ["a", " "]}\n'},
            {"of_sentences": True},
            "expected a list of words, .*a.jsonl, text 1",
        ),
        (
            {"a.csv": "id,texts\n1,a\n"},
            {},
            "expected texts as text, got the columns id, texts; did you mean 'texts'",
        ),
        ({"a.json": "[" * 100_000}, {}, "expected JSON: .*a.json"),
        ({"a.jsonl": "[" * 100_000}, {}, "expected a JSON object in each line, .*a.jsonl, line 1"),
        ({"a.jsonl": '{"text": 1}\n'}, {}, r"expected texts as text, got 1: .*a.jsonl, text 1"),
        ({"a.csv": "text\n\"['a', 'b']\"\n"}, {}, r"expected texts as text, got .*a.csv, text 1"),
        (
            {"a.txt": "a\n"},
            {"inputs": PAIR},
            "expected texts as premise and hypothesis, .*a.txt, text 1",
        ),
        (
            {"a.csv": "b,a\n1,2\n"},
            {"inputs": PAIR, "text_columns": ["a"]},
            "a column for each of premise, hypothesis",
        ),
        (
            {"a.txt": "a", "a.ann": "T1"},
            {},
            "expected files of one kind, got annotations of brat .a.ann., text .a.txt.: .*--glob",
        ),
        ({"a.srt": "a", "b.srt": "b"}, {}, "expected texts or a table, got markup .*: .*a.srt"),
        (
            {"a.txt": "<html>", "b.txt": "<html>"},
            {},
            "expected texts or a table, got markup .*: .*a.txt",
        ),
        (
            {"a.conllu": "a", "b.conllu": "b"},
            {},
            "expected texts or a table, got CoNLL-U .*: .*a.conllu",
        ),
        (
            {"a.txt": b"PK\3\4", "b.txt": b"PK\3\4"},
            {},
            "expected texts or a table, got a zip archive .*: .*a.txt",
        ),
        ({"a.xlsx": "text\nAnn\n"}, {}, "File is not a zip file.*a.xlsx, workbook"),
        ({"a.parquet": b"PAR1"}, {}, ".*a.parquet, Parquet"),
        (
            {"a.txt": "a", "b.jsonl": LINES},
            {},
            "expected files of one kind, got text .a.txt., jsonl",
        ),
        ({"a.txt": ""}, {}, "expected texts, got none"),
        ({"a.txt": "a", "b.txt": "b"}, {"glob": "*.md"}, "expected texts, got none"),
        ({"a.pdf": b"%PDF-1.7"}, {}, "expected texts or a table, got PDF .*: .*a.pdf"),
        ({"a.txt": "id\ttext\n1\ta\n"}, {}, "got columns .*--input-format"),
        (
            {"a.csv": "a\n"},
            {"table": TableOptions(sheet="a")},
            "a workbook for a sheet, got csv: .*a.csv",
        ),
        (
            {"a.jsonl": LINES},
            {"table": TableOptions(header_row=2)},
            "expected csv, tsv, xlsx for a header row, got jsonl: .*a.jsonl",
        ),
        ({"a.csv": "a\ntext\n"}, {"table": TableOptions(header_row=9)}, "expected texts, got none"),
        (
            {"a.csv": "a\n"},
            {"table": TableOptions(header_row=-1)},
            "expected a header row from 0, got -1",
        ),
    ],
)
def test_an_error_names_what_exists(corpus, files, arguments, message):
    with pytest.raises(ValueError, match=message):
        corpus(files, arguments).survey()


def test_a_spreadsheet_is_read(tmp_path, caplog):
    workbook = openpyxl.Workbook()
    rows = [
        ["id", "text", "day", None],
        [None] * 4,
        [7, "a_x000D_\nb", date(2026, 1, 2), None],
        [None, 12, None, None],
        # Without a value that a program has saved.
        ["=x", "=1+1"],
    ]
    for row in rows:
        workbook.active.append(row)
    workbook.create_sheet("empty")
    workbook.save(tmp_path / "a.xlsx")
    corpus = Corpus(tmp_path / "a.xlsx", keep=["day"])
    assert corpus.survey() == (2, {"day": "string"})
    assert list(corpus.documents()) == [
        Document("7", ("a\r\nb",), {"day": "2026-01-02 00:00:00"}),
        Document("2", ("12",), {"day": None}),
    ]
    assert not caplog.text
    workbook["empty"].append(["text"])
    workbook.save(tmp_path / "b.csv")
    assert Corpus(tmp_path / "b.csv").survey() == (2, {})
    assert "reads the first sheet, 'Sheet', not 'empty'" in caplog.text


class TestSheets:
    @pytest.fixture
    def workbook(self, tmp_path):
        workbook = openpyxl.Workbook()
        workbook.active.title = "codes"
        workbook.active.sheet_state = "hidden"
        sheets = {"reviews": [["The title"], ["text"], ["Good."]], "notes": [["text"], ["Bad."]]}
        for title, rows in sheets.items():
            sheet = workbook.create_sheet(title)
            for row in rows:
                sheet.append(row)
        workbook["codes"].append(["text"])
        workbook["codes"].append(["hidden"])
        workbook.save(tmp_path / "a.xlsx")
        return tmp_path / "a.xlsx"

    def test_hidden_ones_are_last(self, workbook, caplog):
        options = TableOptions(header_row=2)
        (document,) = Corpus(workbook, table=options).documents()
        assert document.texts == ("Good.",)
        assert "reads the first sheet, 'reviews', not 'notes' (--sheet)" in caplog.text

    @pytest.mark.parametrize(
        ("sheet", "text"), [("notes", "Bad."), ("3", "Bad."), ("codes", "hidden")]
    )
    def test_one_is_chosen_by_its_name_or_number(self, workbook, sheet, text, caplog):
        (document,) = Corpus(workbook, table=TableOptions(sheet)).documents()
        assert document.texts == (text,)
        assert not caplog.text

    def test_another_name_is_an_error(self, workbook):
        expected = r"sheets 'codes', 'reviews', 'notes', got 'x': .*a.xlsx"
        with pytest.raises(ValueError, match=expected):
            Corpus(workbook, table=TableOptions("x")).survey()

    @pytest.mark.parametrize(("before", "after"), [('r="2"', 'r="2000000000"'), ('"A2"', '"ZZZ2"')])
    def test_rows_and_columns_are_limited_as_in_excel(self, tmp_path, before, after):
        workbook = openpyxl.Workbook()
        workbook.active.append(["text"])
        workbook.active.append(["a"])
        workbook.save(tmp_path / "a.xlsx")
        with zipfile.ZipFile(tmp_path / "a.xlsx") as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        sheet = "xl/worksheets/sheet1.xml"
        assert before.encode() in files[sheet]
        files[sheet] = files[sheet].replace(before.encode(), after.encode())
        with zipfile.ZipFile(tmp_path / "b.xlsx", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        with pytest.raises(ValueError, match=r"at most 1,048,576 rows and 16,384 columns.*b.xlsx"):
            Corpus(tmp_path / "b.xlsx").survey()


def test_the_content_of_a_file_is_logged_if_its_name_does_not_tell_it(corpus, caplog):
    assert corpus({"a.txt": LINES}, {}).survey()[0] == 2
    assert "a.txt is json, by its content" in caplog.text
    caplog.clear()
    corpus({"a.ndjson": LINES}, {}).survey()
    assert not caplog.text


def test_two_columns_of_parquet_with_one_name_are_an_error(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table([["a"], ["b"]], names=["text", "text"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="expected one column 'text', got several"):
        Corpus(tmp_path / "a.parquet").survey()


@pytest.mark.parametrize(
    ("values", "column_type"),
    [
        (["a", None], "string"),
        ([None], "string"),
        ([True, None], "bool"),
        ([1, 2], "int64"),
        ([1, 2.5], "double"),
        ([2**63], "json"),
        ([1, "a"], "json"),
        ([[[0, 8, "PER"]]], "json"),
        ([{}], "json"),
    ],
)
def test_a_kept_column_has_one_type_in_all_rows(tmp_path, values, column_type):
    rows = [json.dumps({"text": "a", "n": value}) for value in values]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    _, types = Corpus(tmp_path / "a.jsonl", keep=["n"]).survey()
    assert types == {"n": column_type}


@pytest.mark.parametrize(
    ("option", "names"),
    [("a, b", ["a", "b"]), ('"a, b",c', ["a, b", "c"]), (["a, b"], ["a, b"]), ("", []), ((), [])],
)
def test_names_of_columns_are_separated_by_commas(option, names):
    assert Corpus(Path("a"), keep=option).keep == names
