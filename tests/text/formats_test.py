import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from elmo_tasks.text.formats import format_of, lines_in, text_sentences

CONLLU = """# text = Nhà có ...
1	Nhà	_	_	_	_	_	_	_	_
2-3	quan trọng	_	_	_	_	_	_	_	_
2	quan trọng	_	_	_	_	_	_	_	_
3	.	_	_	_	_	_	_	_	_

1	Linh	_	_	_	_	_	_	_	_
"""


COLUMNS = "\t_" * 8


def zip_with(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "\0" * 100)
    return file.getvalue()


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "letters", "expected"),
    [
        ("a.txt", "a b\n\n c\n", False, [(1, "a b"), (2, ""), (3, " c")]),
        ("a.conllu", CONLLU, False, [(1, ["Nhà", "quan trọng", "."]), (7, ["Linh"])]),
        ("a.txt", CONLLU, False, [(1, ["Nhà", "quan trọng", "."]), (7, ["Linh"])]),
        ("a.txt", "MK Q\n\nA\n", True, [(1, ["M", "K", "Q"]), (2, []), (3, ["A"])]),
        (
            "a.fasta",
            ">sp|P1 x\nMK\nQ\n\n>P2\n>P3\nA\n",
            True,
            [(1, ["M", "K", "Q"]), (5, []), (6, ["A"])],
        ),
        # These only resemble a different format.
        ("a.txt", "<unk> is here\n> a quote\n", False, [(1, "<unk> is here"), (2, "> a quote")]),
        ("a.txt", "1\n2\n3\n", False, [(1, "1"), (2, "2"), (3, "3")]),
        ("a.txt", "1 In the\n2 And the\n", False, [(1, "1 In the"), (2, "2 And the")]),
        ("a.txt", "[ 1 ]\n( a )\n", False, [(1, "[ 1 ]"), (2, "( a )")]),
        ("a.txt", "a\tb\tc\nd\te\n", False, [(1, "a\tb\tc"), (2, "d\te")]),
        ("a.txt", "[[Berlin]] is big .\n", False, [(1, "[[Berlin]] is big .")]),
        ("a.txt", '{"Berlin", he said .\n', False, [(1, '{"Berlin", he said .')]),
        ("a.txt", "[" * 100_000, False, [(1, "[" * 100_000)]),
    ],
)
def test_sentences_have_the_numbers_of_their_first_lines(
    tmp_path: Path, name, content, letters, expected
):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert list(text_sentences(tmp_path / name, letters=letters)) == expected


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", '{"sentence": "a b"}\n', "json"),
        ("a.txt", '[["a", "b"], ["c"]]\n', "json"),
        ("a.txt", '[\n  {"sentence": "a b"}\n]\n', "json"),
        ("a.txt", '["a", "b"]', "json"),
        ("a.txt", '{"a \\"b\\"": 1}\n', "json"),
        ("a.txt", '{}\n{"a": 1}\n', "json"),
        ("a.txt", "1-1\t0-3\tAnn\tB-PER\n1-2\t4-8\tsang\tO\n", "numbered columns"),
        ("a.txt", "# a\n1\tAnn\tB-PER\tO\n", "numbered columns"),
        ("a.txt", f"0.1\tDogs{COLUMNS}\n", "CoNLL-U"),
        ("a.txt", "#FORMAT=WebAnno TSV 3.3\n\n#Text=Ann\n1-1\t0-3\tAnn\t\n", "numbered columns"),
        ("a.txt", "id\ttext\n1\tIt is good\n", "columns"),
        ("a.txt", "Ann NNP B-PER\nsang VBD O\n. . O\n", "columns"),
        ("a.txt", "-DOCSTART- -X- O O\n", "CoNLL-2003"),
        ("a.txt", "#begin document (a); part 000\n", "CoNLL-2012"),
        ("a.txt", ">sp|P1 x\nMK\nQ\n", "FASTA"),
        ("a.txt", '<doc id="1">\nAnn sang.\n</doc>\n', "markup"),
        ("a.txt", "<!DOCTYPE html>\n", "markup"),
        ("a.xmi", '<?xml version="1.0"?><xmi:XMI>', "markup"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nAnn sang.\n", "markup"),
        ("a.txt", "{\\rtf1 Ann sang.}", "markup"),
        ("a.HTML", "Ann", "markup"),
        ("a.ann", "T1\tPER 0 3\tAnn\n", "annotations of brat"),
        ("a.CSV", "1,It is good\n", "csv"),
        ("a.ndjson", "", "jsonl"),
        ("a.txt", zip_with("xl/workbook.xml"), "xlsx"),
        ("a.csv", zip_with("[Content_Types].xml", "word/document.xml"), "Word (.docx)"),
        ("a.txt", zip_with("mimetype", "content.xml"), "OpenDocument"),
        ("a.txt", zip_with("a.txt"), "a zip archive"),
        ("a.txt", b"PK\x03\x04 a", "a zip archive"),
        ("a.txt", tar(), "a tar archive"),
        ("a.txt", b"%PDF-1.7\n", "PDF"),
        ("a.txt", b"\x28\xb5\x2f\xfd\0", "Zstandard"),
        ("a.txt", b"\x89HDF\r\n\x1a\n\0", "HDF5"),
        ("a.txt", b"\x1f\x8b\x08\0", "gzip without the suffix .gz"),
        ("a.txt", b"PAR1", "parquet"),
        # An image: most of its bytes are zero, as in UTF-16.
        ("a.txt", b"BM" + b"\0\0\0\0\x36" * 300, "binary data"),
        ("a.txt", "Ann sang.".encode("utf-16"), "text"),
        # Without a byte order mark.
        ("a.txt", "Ann sang.".encode("utf-16-le"), "binary data"),
        ("a.txt", "", "text"),
    ],
)
def test_first_bytes_and_suffixes_tell_what_a_file_is(tmp_path: Path, name, content, expected):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert format_of(tmp_path / name) == expected
    if expected not in ("text", "CoNLL-U"):
        with pytest.raises(ValueError, match=rf"got .*{name}"):
            list(text_sentences(tmp_path / name))


def test_a_document_of_office_97_is_not_in_utf_8(tmp_path: Path):
    (tmp_path / "a.doc").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 500)
    with pytest.raises(
        ValueError, match=r"expected UTF-8, got byte 0xd0: .*a\.doc, line 1, byte 1"
    ):
        list(text_sentences(tmp_path / "a.doc"))


def test_a_file_may_be_text_whatever_it_looks_like(tmp_path: Path):
    for name, content in {"a.csv": "a , b\n", "a.txt": '{"a": 1}\n', "a.conllu": "1\ta\n"}.items():
        (tmp_path / name).write_text(content)
        assert list(text_sentences(tmp_path / name, is_text=True)) == [(1, content.rstrip())]


def test_a_reader_names_its_formats_and_what_to_do(tmp_path: Path):
    (tmp_path / "a.txt").write_text('{"a": 1}\n')
    assert list(lines_in(tmp_path / "a.txt", "text", "json")) == [(1, '{"a": 1}')]
    with pytest.raises(ValueError, match=r"expected text, got json .copy it.: .*a.txt"):
        lines_in(tmp_path / "a.txt", "text", "FASTA", hint="copy it")
