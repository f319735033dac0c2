import gzip

import pytest

from elmo_tasks.distillation.texts import read_texts


def read(tmp_path, content, **options):
    file = tmp_path / "texts"
    file.write_text(content)
    return list(read_texts(file, **{"pairs": False, **options}))


class TestReadTexts:
    def test_lines_are_sentences(self, tmp_path):
        """Oracle: by hand; lines without words are skipped, and a limit is kept."""
        content = "The cat sat .\n\n  \nHello\nbye\n"
        expected = [[["The", "cat", "sat", "."]], [["Hello"]], [["bye"]]]
        assert read(tmp_path, content) == expected
        assert read(tmp_path, content, most=2) == expected[:2]

    @pytest.mark.parametrize(
        "line",
        ["EU\trejects\tGerman\tcall", "#texting while driving", "( ( laughs ) ) well", "[ Applause ]", "[1]", "[ ]"],
    )
    def test_a_sentence_may_begin_as_it_likes(self, tmp_path, line):
        """Oracle: its words."""
        assert read(tmp_path, f"{line}\n") == [[line.split()]]

    def test_braces_may_be_those_of_a_sentence(self, tmp_path):
        """Oracle: its words."""
        assert read(tmp_path, "a\n{ }\n{ b }\n") == [[["a"]], [["{", "}"]], [["{", "b", "}"]]]

    def test_a_json_line_may_have_tabs(self, tmp_path):
        """Oracle: the words."""
        assert read(tmp_path, '{"words":\t["a"],\t"b":\t1}\n') == [[["a"]]]

    def test_lines_may_be_compressed(self, tmp_path):
        """Oracle: by hand."""
        (tmp_path / "texts.gz").write_bytes(gzip.compress(b"one two\n"))
        assert list(read_texts(tmp_path / "texts.gz", pairs=False)) == [[["one", "two"]]]

    def test_json_lines_have_words(self, tmp_path):
        """Oracle: by hand; a label is ignored, and a line without words is skipped."""
        content = '{"words": ["a b", "c"], "label": 1}\n{"words": []}\n'
        assert read(tmp_path, content) == [[["a b", "c"]]]

    def test_pairs_are_lines_of_json_or_neighbors(self, tmp_path):
        """Oracle: by hand; a pair with an empty sentence is skipped."""
        content = '{"sentence1": " a b ", "sentence2": "c", "gold_label": "-"}\n{"sentence1": "", "sentence2": "c"}\n'
        assert read(tmp_path, content, pairs=True) == [["a b", "c"]]
        assert read(tmp_path, "one .\ntwo .\n\nthree\n", pairs=True) == [["one .", "two ."], ["two .", "three"]]

    @pytest.mark.parametrize(
        ("content", "pairs", "message"),
        [
            ("", False, "must hold at least a sentence to learn from, but holds none"),
            ("\n \n", True, "must hold at least a pair of sentences"),
            ("alone\n", True, "must hold at least a pair of sentences"),
            (
                '{"words": [1]}\n',
                False,
                r"texts, line 1: a text must have a list of texts under 'words', but has \[1\]",
            ),
            ('{"words": ["a"]}\nb\n', False, "texts, line 2: a text must be a JSON object, but is 'b'"),
            ('{ a }\nb\n{"words": ["a"]}\n', False, "line 1: a text must be a JSON object"),
            ('b\n{ a }\n{"words": ["a"]}\n', False, "line 3: a text must be a sentence, .* but is a JSON object"),
            ('["a", "b"]\n', False, r"line 1: a text must be .* but this is a JSON array: '\[\"a"),
            ('{"words": ["a", ""]}\n', False, r"line 1: a word must have a character, but one of \['a', ''\]"),
            (
                "-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\n",
                False,
                "line 1: a text must be a .* the beginning of a CoNLL file",
            ),
            (
                "# newdoc id = a\n1\tThe\tthe\tDET\n",
                False,
                "line 1: .* the beginning of a CoNLL file: '# newdoc id = a'",
            ),
            ("EU\tB-ORG\nrejects\tO\n", False, r"line 1: .* a word with its tag: 'EU\\tB-ORG'"),
            ("The\tO\n", False, "line 1: .* a word with its tag"),
            ("EU NNP B-NP B-ORG\n", False, "line 1: .* a word with its tag: 'EU NNP B-NP B-ORG'"),
            ("\n(3 (2 It) (4 (2 's) (4 good)))\n", False, r"line 2: .* a tree: .*Write its sentences as lines"),
            (
                "gold_label\tsentence1\tsentence2\n-\ta\tb\n",
                True,
                "line 1: .* the head of a table: .*pairs as JSON lines",
            ),
            (
                '{"words": ["a", "\\ud800"]}\n',
                False,
                r"line 1: a text must be Unicode, but '\\ud800' has half of a sur",
            ),
            (
                '{"sentence1": "a", "sentence2": "\\ud800 b"}\n',
                True,
                r"line 1: a text must be Unicode, but '\\ud800 b' has half",
            ),
            ('{"sentence1": "a"}\n', True, r"line 1: a pair must have texts .* but has \['a', None\]"),
        ],
    )
    def test_another_form_is_an_error(self, tmp_path, content, pairs, message):
        """Oracle: the message has file, line and value."""
        with pytest.raises(ValueError, match=message):
            read(tmp_path, content, pairs=pairs)
