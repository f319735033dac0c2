import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from elmo_tasks.bilm.character_ids import (
    BEGIN_OF_SENTENCE,
    BYTES,
    END_OF_SENTENCE,
    MAX_CHARACTERS_PER_TOKEN,
    N_CHARACTER_IDS,
    word_to_character_ids,
)
from tests.bilm.helpers import batches, words


def row(*ids: int) -> list[int]:
    return [*ids, *[261] * (50 - len(ids))]


class TestWordToCharacterIds:
    @pytest.mark.parametrize(
        ("word", "expected"),
        [
            ("The", row(259, 85, 105, 102, 260)),
            ("", row(259, 260)),
            ("\x00\x7f", row(259, 1, 128, 260)),
            ("é", row(259, 0xC3 + 1, 0xA9 + 1, 260)),
            ("😀", row(259, 0xF0 + 1, 0x9F + 1, 0x98 + 1, 0x80 + 1, 260)),
            ("<S>", row(259, 257, 260)),
            ("</S>", row(259, 258, 260)),
            ("<s>", row(259, 61, 116, 63, 260)),
            ("a\ud83db", row(259, 98, 99, 260)),
            ("a" * 47, row(259, *[98] * 47, 260)),
            ("a" * 48, row(259, *[98] * 48, 260)),
            ("a" * 49, row(259, *[98] * 48, 260)),
            # 48 bytes end in the middle of the é.
            ("a" * 47 + "é", row(259, *[98] * 47, 0xC3 + 1, 260)),
        ],
    )
    def test_it_gives_the_expected_rows(self, word, expected):
        assert word_to_character_ids(word).tolist() == expected

    @given(words() | st.text(st.characters(), max_size=80))
    @example("\ud800")
    @example("<S>\ud800")
    @example("😀" * 13)
    @example("a" * 10_000)
    def test_it_equals_allennlp(self, word):
        from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper

        ids = word_to_character_ids(word)
        assert ids.tolist() == ELMoCharacterMapper().convert_word_to_char_ids(word)
        assert ids.shape == (MAX_CHARACTERS_PER_TOKEN,)
        assert ids.min() >= 1
        assert ids.max() < N_CHARACTER_IDS


class TestSentenceBoundaryIds:
    def test_they_are_the_ids_of_the_boundary_words(self):
        from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper

        ((begin, end),) = BYTES.batch([BYTES.boundaries])
        assert (begin - 1).tolist() == ELMoCharacterMapper.beginning_of_sentence_characters
        assert (end - 1).tolist() == ELMoCharacterMapper.end_of_sentence_characters
        assert begin.tolist() == word_to_character_ids(BEGIN_OF_SENTENCE).tolist()
        assert end.tolist() == word_to_character_ids(END_OF_SENTENCE).tolist()


class TestSentencesToCharacterIds:
    @given(batches())
    def test_it_equals_allennlp(self, sentences):
        from allennlp.modules.elmo import batch_to_ids

        ids = BYTES.batch(sentences)
        assert ids.shape == (len(sentences), max(map(len, sentences)), 50)
        assert ids.dtype == torch.int64
        if ids.numel():
            assert torch.equal(ids, batch_to_ids(sentences))

    @pytest.mark.parametrize(
        "sentences", [[["The", "cat"], "The cat"], [["The", "", "cat"]]], ids=["string", "empty"]
    )
    def test_input_other_than_lists_of_words_is_refused(self, sentences):
        for convert in (BYTES.batch, BYTES.numbered):
            with pytest.raises(ValueError, match="The"):
                convert(sentences)

    @given(batches())
    def test_numbered_words_have_the_same_ids(self, sentences):
        numbered = BYTES.numbered(sentences)
        ids = BYTES.batch(sentences).numpy()
        assert len(set(numbered.words)) == len(numbered.words) == len(numbered.rows)
        for padded_numbers, expected, sentence in zip(
            numbered.numbers, ids, sentences, strict=True
        ):
            numbers, padding = np.split(padded_numbers, [len(sentence)])
            assert [numbered.words[number] for number in numbers] == sentence
            assert (numbered.rows[numbers] == expected[: len(sentence)]).all()
            assert (padding == -1).all()
