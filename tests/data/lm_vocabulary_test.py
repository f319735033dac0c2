from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.data import Instance, Vocabulary

from elmo_tasks.bilm.softmax.word_list import WordList
from elmo_tasks.data import LM_NAMESPACE, LmReader, LmVocabulary


def instances(*sentences: str) -> list[Instance]:
    return [LmReader().text_to_instance(sentence.split()) for sentence in sentences]


def words_of(vocabulary: Vocabulary) -> list[str]:
    """In the order of their numbers."""
    numbers = vocabulary.get_token_to_index_vocabulary(LM_NAMESPACE)
    assert sorted(numbers.values()) == list(range(len(numbers)))
    return sorted(numbers, key=numbers.__getitem__)


def test_the_words_of_a_text_follow_the_special_ones():
    vocabulary = LmVocabulary.from_counts(instances("b a b c", "a d b"), min_count=2)
    assert words_of(vocabulary) == ["<S>", "</S>", "<UNK>", "b", "a"]


class TestFromWordList:
    def read(self, path: Path, content: bytes) -> Vocabulary:
        path.write_bytes(content)
        params = Params({"type": "elmo_lm_from_file", "path": str(path)})
        # AllenNLP passes instances to every vocabulary.
        return Vocabulary.from_params(params, instances=iter([]))

    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_words_have_the_numbers_of_their_lines(self, tmp_path, end):
        lines = ["</S>", "<S>", "<UNK>", "the", "ça", "@@UNKNOWN@@"]
        content = "\n".join(lines).encode().replace(b"\n", end)
        assert words_of(self.read(tmp_path / "vocab.txt", content)) == lines

    def test_lines_that_bilm_tf_skips_have_no_number(self, tmp_path):
        content = b"<S>\n</S>\n<UNK>\nthe\n!!!MAXTERMID\ncat\n"
        file = tmp_path / "vocab.txt"
        expected = ["<S>", "</S>", "<UNK>", "the", "cat"]
        assert words_of(self.read(file, content)) == expected
        assert list(WordList.from_file(file).words) == expected
        vocabulary = LmVocabulary.from_counts(instances("!!!MAXTERMID a"))
        assert words_of(vocabulary) == ["<S>", "</S>", "<UNK>", "a"]


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
        folder = str(tmp_path / "vocabulary")
        vocabulary.save_to_files(folder)
        loaded = cls.from_files(folder)
        assert words_of(loaded) == words_of(vocabulary)
        second_folder = str(tmp_path / "second")
        loaded.save_to_files(second_folder)
        assert words_of(LmVocabulary.from_files(second_folder)) == words_of(vocabulary)
