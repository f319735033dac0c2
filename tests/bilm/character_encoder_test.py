import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.character_encoder import CharacterEncoder, distinct_rows
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.packed_linear import IS_GPU
from elmo_tasks.bilm.plain import CharacterCnn
from tests.bilm.helpers import SMALL, bilm_options, plain_of, random_bilm, words


def random_encoders(
    options: BilmOptions = SMALL, seed: int = 0
) -> tuple[CharacterEncoder, CharacterCnn]:
    """The fast and the plain one, in float64, with the same weights."""
    bilm = random_bilm(options, seed=seed, std=0.5).double().requires_grad_()
    return bilm.character_encoder, plain_of(bilm).character_encoder


def encode(encoder: CharacterEncoder, sentence: list[str]) -> torch.Tensor:
    """The vectors of the words: shape `(n_words, projection_dim)`."""
    return encoder.encode(*distinct_rows(BYTES.batch([sentence])[0]), torch.float64)


class TestCharacterEncoder:
    @given(bilm_options(), st.lists(words(), min_size=1, max_size=6), st.integers(0, 1000))
    def test_it_equals_the_plain_computation(self, options, sentence, seed):
        encoder, plain = random_encoders(options, seed)
        vectors = encode(encoder, sentence)
        (character_ids,) = BYTES.batch([sentence])
        expected = plain(character_ids)
        torch.testing.assert_close(vectors, expected, rtol=0, atol=1e-10)
        # Squares: a word that is computed once must still count as often as it occurs.
        gradients = torch.autograd.grad((vectors**2).sum(), list(encoder.parameters()))
        by_plain = torch.autograd.grad((expected**2).sum(), list(plain.parameters()))
        torch.testing.assert_close(gradients, by_plain, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("width", [1, 7, 50])
    def test_a_filter_may_be_wider_than_the_word_and_the_word_longer_than_its_columns(self, width):
        """Covers the lengths around which padding ends or a word is cut."""
        options = dataclasses.replace(SMALL, filters=((width, 12),))
        encoder, plain = random_encoders(options)
        for n_bytes in (1, 2, 40, 41, 42, 46, 47, 48, 49, 60):
            sentence = ["x" * n_bytes]
            (character_ids,) = BYTES.batch([sentence])
            expected = plain(character_ids)
            torch.testing.assert_close(encode(encoder, sentence), expected, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("with_gradients", [False, True])
    def test_more_words_than_one_chunk(self, with_gradients):
        """600 distinct words of 1 to 60 bytes are encoded in chunks of 256, sorted by length."""
        encoder, _ = random_encoders()
        encoder.requires_grad_(with_gradients)
        words = [f"{index:03}" + "b" * (index % 58) for index in range(600)]
        together = encode(encoder, words)
        for index in (0, 57, 255, 256, 599):
            (alone,) = encode(encoder, [words[index]])
            torch.testing.assert_close(together[index], alone, rtol=0, atol=1e-6)

    def test_a_new_encoder_is_initialised_as_in_bilm_tf(self):
        encoder = CharacterEncoder(SMALL)
        assert not encoder.embedding.weight[0].any()
        assert encoder.embedding.weight[1:].abs().max() <= 1.0
        n_biases = 0
        for name, parameter in encoder.named_parameters():
            if name.endswith("bias"):
                expected = -2.0 if "carry" in name else 0.0
                assert (parameter == expected).all(), name
                n_biases += 1
        assert n_biases == 3 + 2 * 2 + 1


class TestDistinctRows:
    @given(
        data=st.data(),
        n_rows=st.integers(0, 9),
        n_columns=st.integers(0, 4),
        ids=st.sampled_from([[0, 1], [0, 2**15], [-1, 2**16 - 1]]),
        as_on_a_gpu=st.booleans(),
    )
    def test_distinct_rows_and_positions_rebuild_the_matrix(
        self, data, n_rows, n_columns, ids, as_on_a_gpu
    ):
        id_columns = [st.sampled_from(ids)] * n_columns
        rows = data.draw(st.lists(st.tuples(*id_columns), min_size=n_rows, max_size=n_rows))
        matrix = torch.tensor(rows, dtype=torch.long).view(n_rows, n_columns)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setitem(IS_GPU, "cpu", as_on_a_gpu)
            distinct, positions = distinct_rows(matrix)
        assert torch.equal(distinct[positions], matrix)
        assert len(distinct) == len(set(rows))
