from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.data import Instance, Vocabulary

from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.data import LM_NAMESPACE, LmReader, LmVocabulary

SPECIAL = ["<S>", "</S>", "<UNK>"]


def instances(*sentences: str) -> list[Instance]:
    return [LmReader().text_to_instance(sentence.split()) for sentence in sentences]


def words_of(vocabulary: Vocabulary) -> list[str]:
    """In the order of their numbers."""
    numbers = vocabulary.get_token_to_index_vocabulary(LM_NAMESPACE)
    assert sorted(numbers.values()) == list(range(len(numbers)))
    return sorted(numbers, key=numbers.__getitem__)


def test_the_words_of_a_text_follow_the_special_ones():
    assert words_of(LmVocabulary.from_counts(instances("b a b c", "a d b"), min_count=2)) == [
        *SPECIAL,
        "b",
        "a",
    ]


class TestFromWordList:
    def read(self, path: Path, content: bytes) -> Vocabulary:
        path.write_bytes(content)
        # AllenNLP passes instances to every vocabulary.
        return Vocabulary.from_params(
            Params({"type": "elmo_lm_from_file", "path": str(path)}), instances=iter([])
        )

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_words_have_the_numbers_of_their_lines(self, tmp_path, end):
        lines = ["</S>", "<S>", "<UNK>", "the", "ça", "@@UNKNOWN@@"]
        vocabulary = self.read(tmp_path / "vocab.txt", end.join(line.encode() for line in lines))
        assert words_of(vocabulary) == lines

    def test_lines_that_bilm_tf_skips_have_no_number(self, tmp_path):
        content = b"<S>\n</S>\n<UNK>\nthe\n!!!MAXTERMID\ncat\n"
        words = words_of(self.read(tmp_path / "vocab.txt", content))
        assert (
            words
            == list(WordList.from_file(tmp_path / "vocab.txt").words)
            == ["<S>", "</S>", "<UNK>", "the", "cat"]
        )
        assert words_of(LmVocabulary.from_counts(instances("!!!MAXTERMID a"))) == [
            "<S>",
            "</S>",
            "<UNK>",
            "a",
        ]


class TestFiles:
    @pytest.mark.parametrize(
        "cls", [LmVocabulary, Vocabulary], ids=["an archive", "distributed workers"]
    )
    def test_a_vocabulary_is_loaded_from_its_files(self, tmp_path, cls):
        strange = (
            "@@UNKNOWN@@ @@PADDING@@ \N{ZERO WIDTH SPACE} \x00 a\x7fb ça \N{REPLACEMENT CHARACTER}"
        )
        vocabulary = LmVocabulary.from_counts(instances(strange, "b b a"))
        assert len(words_of(vocabulary)) == 12
        vocabulary.save_to_files(str(tmp_path / "vocabulary"))
        again = cls.from_files(str(tmp_path / "vocabulary"))
        assert words_of(again) == words_of(vocabulary)
        again.save_to_files(str(tmp_path / "again"))
        assert words_of(LmVocabulary.from_files(str(tmp_path / "again"))) == words_of(vocabulary)
