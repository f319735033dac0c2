from pathlib import Path

import pytest

from elmo_tasks.text.formats import lines_in, text_sentences

CONLLU = """# text = Nhà có ...
1	Nhà	_	_	_	_	_	_	_	_
2-3	quan trọng	_	_	_	_	_	_	_	_
2	quan trọng	_	_	_	_	_	_	_	_
3	.	_	_	_	_	_	_	_	_

1	Linh	_	_	_	_	_	_	_	_
"""


COLUMNS = "\t_" * 8


@pytest.mark.parametrize(
    ("name", "content", "letters", "expected"),
    [
        ("a.txt", "a b\n\n c\n", False, [(1, "a b"), (2, ""), (3, " c")]),
        ("a.conllu", CONLLU, False, [(1, ["Nhà", "quan trọng", "."]), (7, ["Linh"])]),
        ("a.txt", "MK Q\n\nA\n", True, [(1, ["M", "K", "Q"]), (2, []), (3, ["A"])]),
        ("a.fasta", ">sp|P1 x\nMK\nQ\n\n>P2\n>P3\nA\n", True, [(1, ["M", "K", "Q"]), (5, []), (6, ["A"])]),
        # These only resemble a different format.
        ("a.txt", "<unk> is here\n> a quote\n", False, [(1, "<unk> is here"), (2, "> a quote")]),
        ("a.txt", "1\n2\n3\n", False, [(1, "1"), (2, "2"), (3, "3")]),
        ("a.txt", "1 In the\n2 And the\n", False, [(1, "1 In the"), (2, "2 And the")]),
        ("a.txt", "[ 1 ]\n( a )\n", False, [(1, "[ 1 ]"), (2, "( a )")]),
        ("a.txt", "a\tb\tc\nd\te\n", False, [(1, "a\tb\tc"), (2, "d\te")]),
        ("a.txt", "[[Berlin]] is big .\n", False, [(1, "[[Berlin]] is big .")]),
        ("a.txt", '{"Berlin", he said .\n', False, [(1, '{"Berlin", he said .')]),
    ],
)
def test_sentences_have_the_numbers_of_their_first_lines(tmp_path: Path, name, content, letters, expected):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert list(text_sentences(tmp_path / name, letters=letters)) == expected


@pytest.mark.parametrize(
    ("name", "kind", "content"),
    [
        ("a.txt", "JSON", '{"sentence": "a b"}\n'),
        ("a.txt", "JSON", '[["a", "b"], ["c"]]\n'),
        ("a.txt", "numbered columns", f"1\tDogs{COLUMNS}\n"),
        ("a.txt", "numbered columns", f"\n# text = Dogs\n1\tDogs{COLUMNS}\n\n"),
        ("a.txt", "numbered columns", f"0.1\tDogs{COLUMNS}\n"),
        ("a.txt", "WebAnno TSV", "#Text=Dogs\n1-1\t0-4\tDogs\t_\n"),
        ("a.csv", "a table", "1,It is good\n"),
        ("a.CSV", "a table", "1,It is good\n"),
        ("a.txt", "JSON", '[\n  {"sentence": "a b"}\n]\n'),
        ("a.tar.gz", "an archive", "a b\n"),
    ],
)
def test_a_short_file_in_a_different_format_is_recognised(tmp_path: Path, name, kind, content):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=rf"{kind}.*{name}"):
        list(text_sentences(tmp_path / name))


def test_a_file_may_be_text_whatever_it_looks_like(tmp_path: Path):
    for name, content in {"a.csv": "a , b\n", "a.txt": '{"a": 1}\n', "a.conllu": "1\ta\n"}.items():
        (tmp_path / name).write_text(content)
        assert list(text_sentences(tmp_path / name, is_text=True)) == [(1, content.rstrip())]


@pytest.mark.parametrize(
    ("command", "remedy"),
    [("annotate", "--input-format jsonl"), ("embed", "--input-format text"), ("tasks", "allennlp predict")],
)
def test_what_to_do_depends_on_the_command(tmp_path: Path, command, remedy):
    (tmp_path / "a.txt").write_text('{"a": 1}\n')
    with pytest.raises(ValueError, match=remedy):
        list(lines_in(tmp_path / "a.txt", "text", command=command))
