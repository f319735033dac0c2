import logging
import re
from pathlib import Path
from typing import Any

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance, Token, Vocabulary

from elmo_tasks.data import SrlReader
from elmo_tasks.data.dataset_readers.srl_reader import read_propositions


def rows(words: str, *columns: str) -> str:
    """A sentence in the columns of CoNLL-2012, each predicate's column given as one string."""
    cells = zip(words.split(), *(column.split() for column in columns), strict=True)
    return "".join(
        f"d   0   {n}   {word}   XX   *   -   -   -   -   *   {'   '.join([*more, '-'])}\n"
        for n, (word, *more) in enumerate(cells)
    )


def content_of(instance: Instance) -> tuple[list[str], list[int], list[str] | None]:
    tags = list(instance["tags"].labels) if "tags" in instance.fields else None
    return [token.text for token in instance["tokens"].tokens], list(instance["verb_indicator"].labels), tags


def read(path: Path, content: str) -> list[Any]:
    path.write_text(content)
    return [content_of(instance) for instance in SrlReader().read(str(path))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.gold_conll"


class TestSrlReader:
    def test_there_is_an_instance_for_each_predicate(self, path):
        """Oracle: by hand; a sentence without predicates has none."""
        content = "#begin document (d); part 000\n"
        content += rows("Ann said Tom slept", "(ARG0*) (V*) (ARG1* *)", "* * (ARG0*) (V*)") + "\n"
        content += rows("Oh my") + "\n" + rows("Go", "(V*)") + "#end document\n"
        words = ["Ann", "said", "Tom", "slept"]
        assert read(path, content) == [
            (words, [0, 1, 0, 0], ["B-ARG0", "B-V", "B-ARG1", "I-ARG1"]),
            (words, [0, 0, 0, 1], ["O", "O", "B-ARG0", "B-V"]),
            (["Go"], [1], ["B-V"]),
        ]

    def test_parts_and_long_predicates_stay_what_they_are(self, path):
        """Oracle: by hand; the later part of the predicate is not marked."""
        content = rows("It , he went on , did up", "(ARG1*) * (ARG0*) (V* *) * (C-ARG1*) (C-V*)")
        tags = ["B-ARG1", "O", "B-ARG0", "B-V", "I-V", "O", "B-C-ARG1", "B-C-V"]
        words = ["It", ",", "he", "went", "on", ",", "did", "up"]
        assert read(path, content) == [(words, [0, 0, 0, 1, 1, 0, 0, 0], tags)]

    def test_two_predicates_may_share_a_word(self, path):
        """Oracle: by hand; AllenNLP's reader has one of them."""
        content = rows("his hand shake", "(ARG0*) * (V*)", "* (ARG1*) (V*)")
        words, mark = ["his", "hand", "shake"], [0, 0, 1]
        assert read(path, content) == [(words, mark, ["B-ARG0", "O", "B-V"]), (words, mark, ["O", "B-ARG1", "B-V"])]

    def test_the_instances_are_those_of_the_reader_of_allennlp(self, fixtures_root):
        """Oracle: AllenNLP's `srl` on the data that ships; it marks `C-V`, and reads columns without a predicate."""
        import allennlp_models.structured_prediction  # noqa: F401

        folder = fixtures_root / "srl" / "train"
        expected = []
        for instance in DatasetReader.from_params(Params({"type": "srl"})).read(str(folder)):
            words, indicator, tags = content_of(instance)
            if any(indicator):
                indicator = [mark * (tag != "B-C-V") for mark, tag in zip(indicator, tags, strict=True)]
                expected.append((words, indicator, tags))
        assert len(expected) > 60
        assert [content_of(instance) for instance in SrlReader().read(str(folder))] == expected

    def test_the_metadata_has_what_predictions_need(self, path):
        """Oracle: by hand; of a predicate of two words the first."""
        path.write_text(rows("He went on", "(ARG0*) (V* *)"))
        (instance,) = SrlReader().read(str(path))
        words, tags = ["He", "went", "on"], ["B-ARG0", "B-V", "I-V"]
        expected = {"words": words, "verb": "went", "verb_index": 1, "gold_tags": tags}
        assert instance["metadata"].metadata == expected

    def test_a_folder_is_read_in_the_order_of_names(self, tmp_path):
        """Oracle: by hand; files with other endings are ignored."""
        for name in ("b/z.gold_conll", "b/a.v4_gold_conll", "a/c/x.gold_conll", "a/x.gold_skel", "x.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(rows(name, "(V*)"))
        found = [instance["tokens"].tokens[0].text for instance in SrlReader().read(str(tmp_path))]
        assert found == ["a/c/x.gold_conll", "b/a.v4_gold_conll", "b/z.gold_conll"]

    def test_a_folder_without_files_is_an_error(self, tmp_path):
        """Oracle: the message."""
        with pytest.raises(
            ValueError, match=f"{re.escape(str(tmp_path))} must hold files whose names end in gold_conll"
        ):
            list(SrlReader().read(str(tmp_path)))

    def test_a_proposition_without_predicate_is_skipped_and_counted(self, path, caplog):
        """Oracle: the log."""
        path.write_text(rows("Ann slept", "(ARG0*) *", "(ARG0*) (V*)", "* *"))
        with caplog.at_level(logging.INFO, "elmo_tasks"):
            assert len(list(read_propositions(str(path)))) == 1
        assert f"{path}: 1 propositions" in caplog.text
        assert f"{path}: 2 propositions without a predicate (V) were skipped" in caplog.text

    @pytest.mark.parametrize(
        ("column", "line", "rest"),
        [
            (
                "(V*) (ARG0* (ARG1* *)",
                3,
                r"must not overlap, but '\(ARG1\*' begins ARG1 within ARG0 from line 2: close",
            ),
            ("(V*) (ARG0(ARG1*) *) *", 2, "must not overlap, .* begins ARG0 and ARG1 together"),
            ("(V*) * (V*) *", 3, "must have one predicate, but this one has V here and in line 1: call the second C-V"),
            ("(V*) *) * *", 2, "opened before it is closed"),
            ("(V*) (ARG0*)) * *", 2, "opened before it is closed"),
            ("(V*) (ARG0*) (ARG1* *", 3, r"must be closed by \*\) before its sentence ends, but ARG1 is not"),
            ("(V*) ARG0 * *", 2, r"must look like \(ARG0\*, \*, \*\) or \(V\*\), but this is 'ARG0'"),
            ("(V*) (* * *", 2, "must look like"),
            ("(V*) - * *", 2, "must look like"),
        ],
    )
    def test_a_broken_column_is_named(self, path, column, line, rest):
        """Oracle: the message says file, line, column, rule, value and remedy."""
        path.write_text(rows("a b c d", "(V*) * * *", column))
        with pytest.raises(ValueError, match=rf"{re.escape(str(path))}, line {line}, column 13: .*{rest}"):
            list(SrlReader().read(str(path)))

    @pytest.mark.parametrize("content", ["", "\n \n\n"])
    def test_an_empty_file_is_named(self, path, content):
        """Oracle: the message; also for one of the files of a folder."""
        path.write_text(content)
        (path.parent / "a.gold_conll").write_text(rows("Go", "(V*)"))
        for place in (path, path.parent):
            with pytest.raises(ValueError, match=f"{path} must hold at least one sentence, .* is empty"):
                list(SrlReader().read(str(place)))

    def test_sentences_without_any_predicate_are_an_error(self, path):
        """Oracle: the message."""
        path.write_text("#begin document (d); part 000\n" + rows("Oh my") + "\n#end document\n")
        with pytest.raises(ValueError, match=f"{path} must hold at least one predicate"):
            list(SrlReader().read(str(path)))

    def test_a_file_without_its_last_column_is_an_error(self, path):
        """Oracle: the message; without it the last predicate of each sentence was lost."""
        content = rows("Ann said so", "(ARG0*) (V*) (ARG1*)", "* * *")
        path.write_text(content.replace("   -\n", "\n"))
        with pytest.raises(ValueError, match=rf"{path}, line 1: the last column must be that of coreference, .*'\*'"):
            list(SrlReader().read(str(path)))
        path.write_text(rows("Ann said so", "(ARG0*) (V*) (ARG1*)").replace("   -\n", "   (0)|(1\n"))
        assert len(list(SrlReader().read(str(path)))) == 1

    def test_a_comment_in_a_sentence_is_an_error(self, path):
        """Oracle: the message; the sentence was cut in two."""
        first, second = rows("Ann slept", "(ARG0*) (V*)").splitlines(keepends=True)
        path.write_text(f"{first}# comment\n{second}")
        with pytest.raises(ValueError, match=f"{path}, line 2: a comment must not be in a sentence"):
            list(SrlReader().read(str(path)))

    def test_a_label_must_be_seen(self, path):
        """Oracle: the message; U+200B made another label."""
        path.write_text(rows("Ann slept", "(ARG0\u200b*) (V*)"), encoding="utf-8")
        with pytest.raises(ValueError, match=rf"{path}, line 1, column 12: .* but this is '\(ARG0\\u200b\*\)'"):
            list(SrlReader().read(str(path)))

    def test_a_missing_column_is_named(self, path):
        """Oracle: the message says file, line, and the numbers of columns."""
        lines = rows("a b", "(V*) *").splitlines()
        path.write_text("\n".join([lines[0], lines[1].removesuffix("   -")]))
        with pytest.raises(ValueError, match=rf"{path}, line 2: .* same number of columns, 13 as its first, .* has 12"):
            list(SrlReader().read(str(path)))
        path.write_text("\n\nAnn slept\n")
        with pytest.raises(ValueError, match=f"{path}, line 3: a line must have the 12 columns .* has 2: 'Ann slept'"):
            list(SrlReader().read(str(path)))

    @pytest.mark.parametrize("indicator", [[0, 0], [1], [1, 0, 0], [2, 0], []])
    def test_an_indicator_that_does_not_fit_is_an_error(self, indicator):
        """Oracle: the message says rule and values."""
        expected = f"a 1 at the predicate, but is {re.escape(str(indicator))} for "
        with pytest.raises(ValueError, match=expected):
            SrlReader().text_to_instance(["a", "b"], indicator)

    def test_text_to_instance_takes_words_and_tokens_and_may_have_no_tags(self):
        """Oracle: by hand."""
        for words in (["Ann", "slept"], [Token("Ann"), Token("slept")]):
            instance = SrlReader().text_to_instance(words, [0, 1])
            assert content_of(instance) == (["Ann", "slept"], [0, 1], None)
            assert instance["metadata"].metadata == {"words": ["Ann", "slept"], "verb": "slept", "verb_index": 1}

    def test_a_label_has_both_its_tags_in_the_vocabulary(self, path):
        """Oracle: by hand, of which the file has one each."""
        path.write_text(rows("a b", "(ARG0*) (V*)"))
        vocabulary = Vocabulary.from_instances(SrlReader().read(str(path)))
        tags = {"B-ARG0", "I-ARG0", "B-V", "I-V"}
        assert set(vocabulary.get_token_to_index_vocabulary("labels")) == tags

    def test_a_label_that_the_model_does_not_have_is_named(self, path):
        """Oracle: the message, which must hold the labels of both and the sentence."""
        path.write_text(rows("a b", "(ARG0*) (V*)"))
        reader = SrlReader()
        vocabulary = Vocabulary.from_instances(reader.read(str(path)))
        instance = reader.text_to_instance(["c", "d"], [1, 0], ["B-V", "B-ARG9"])
        reader.apply_token_indexers(instance)
        with pytest.raises(ValueError, match=r"^the input: .* training \(ARG0, V\), but the sentence 'c d' has ARG9"):
            instance.index_fields(vocabulary)
        path.write_text("\n" + rows("a b", "(ARG8*) (V*)"))
        (instance,) = reader.read(str(path))
        with pytest.raises(ValueError, match=rf"^{path}, line 2: the labels of arguments must .* 'a b' has ARG8"):
            instance.index_fields(vocabulary)

    def test_files_are_read_as_allennlp_reads_them(self, fixtures_root):
        from allennlp_models.common.ontonotes import Ontonotes

        folder = str(fixtures_root / "srl")
        expected = [
            (sentence.words, tags)
            for sentence in Ontonotes().dataset_iterator(folder)
            for _, tags in sentence.srl_frames
        ]
        assert len(expected) > 100
        assert [(words, tags) for words, tags, _ in read_propositions(folder)] == expected

    def test_folders_that_are_linked_are_read(self, path, tmp_path_factory):
        """Oracle: by hand; OntoNotes is often put together of links."""
        linked = tmp_path_factory.mktemp("linked")
        (linked / "b.gold_conll").write_text(rows("Go", "(V*)"))
        (path.parent / "bc").symlink_to(linked)
        assert read(path.parent / "a.gold_conll", rows("Stay", "(V*)")) == [(["Stay"], [1], ["B-V"])]
        assert [words for words, *_ in read_propositions(str(path.parent))] == [["Stay"], ["Go"]]

    def test_marks_of_conversations_lose_their_slash(self, path):
        """Oracle: the words of the reader of coreference."""
        ((words, *_),) = read(path, rows("Go /. /? /-", "(V*) * * *"))
        assert words == ["Go", ".", "?", "/-"]

    def test_a_lost_empty_line_is_an_error(self, path):
        """Oracle: the message; numbers that are no numbers, or that begin anywhere, are none."""
        path.write_text(rows("Ann slept", "(ARG0*) (V*)") + rows("Go", "(V*)").replace("(V*)", "*"))
        with pytest.raises(
            ValueError, match=rf"{path}, line 3: the numbers of the words .* 0 comes after 0 and 1: put an"
        ):
            list(SrlReader().read(str(path)))
        for first, second in (("-", "-"), ("1", "2"), ("0", "0")):
            content = rows("Ann slept", "(ARG0*) (V*)")
            content = content.replace("d   0   0", f"d   0   {first}").replace("d   0   1", f"d   0   {second}")
            assert len(read(path, content)) == 1
