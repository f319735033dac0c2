import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.bilm import BilmOptions
from elmo_tasks.bilm.character_encoder import CharacterEncoder, distinct_rows
from elmo_tasks.bilm.characters import BYTES
from elmo_tasks.bilm.kernels.packed_linear import STACKED_ON
from tests.bilm.helpers import SMALL, bilm_options, random_bilm, words


def random_encoder(options: BilmOptions, seed: int = 0) -> CharacterEncoder:
    return random_bilm(options, seed=seed, std=0.5).character_encoder.double().requires_grad_()


def by_the_formula(encoder: CharacterEncoder, options: BilmOptions, character_ids: torch.Tensor) -> torch.Tensor:
    """Each word on its own, over all of its 50 columns, computed only from the arrays."""
    parameters = dict(encoder.named_parameters())
    activation = {"relu": lambda x: x.clamp(min=0), "tanh": torch.tanh}[options.activation]
    # Shape: (n_words, 50, character_dim)
    characters = parameters["embedding.weight"][character_ids]
    hidden = []
    for i, (width, _) in enumerate(options.filters):
        # Shape: (n_words, 50 - width + 1, character_dim, width)
        windows = characters.unfold(1, width, 1)
        convolved = torch.einsum("npcw,fcw->npf", windows, parameters[f"convolutions.{i}.weight"])
        hidden.append(activation(convolved + parameters[f"convolutions.{i}.bias"]).max(1).values)
    x = torch.cat(hidden, -1)
    for i in range(options.n_highway):
        transform, carry = (
            x @ parameters[f"highways.{i}.{gate}.weight"].T + parameters[f"highways.{i}.{gate}.bias"]
            for gate in ("transform", "carry")
        )
        g = 1 / (1 + torch.exp(-carry))
        x = g * transform.clamp(min=0) + (1 - g) * x
    return x @ parameters["projection.weight"].T + parameters["projection.bias"]


class TestCharacterEncoder:
    @settings(max_examples=60)
    @given(bilm_options(), st.lists(words(), min_size=1, max_size=6), st.integers(0, 1000))
    def test_it_equals_the_plain_computation(self, options, sentence, seed):
        encoder = random_encoder(options, seed)
        character_ids = BYTES.batch([sentence])[0]
        ours, plain = encoder(character_ids), by_the_formula(encoder, options, character_ids)
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-10)
        parameters = list(encoder.parameters())
        # Squares: a word that is computed once must still count as often as it occurs.
        gradients = (
            torch.autograd.grad((vectors**2).sum(), parameters, allow_unused=True, materialize_grads=True)
            for vectors in (ours, plain)
        )
        torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("width", [1, 7, 50])
    def test_a_filter_may_be_wider_than_the_word_and_the_word_longer_than_its_columns(self, width):
        """Covers the lengths around which padding ends or a word is cut."""
        options = dataclasses.replace(SMALL, filters=((width, 12),))
        encoder = random_encoder(options)
        for n_bytes in (1, 2, 40, 41, 42, 46, 47, 48, 49, 60):
            character_ids = BYTES.batch([["x" * n_bytes]])[0]
            expected = by_the_formula(encoder, options, character_ids)
            torch.testing.assert_close(encoder(character_ids), expected, rtol=0, atol=1e-10)

    @pytest.mark.parametrize("with_gradients", [False, True])
    def test_more_words_than_one_chunk(self, with_gradients):
        """600 distinct words of 1 to 60 bytes are encoded in chunks of 256, sorted by length."""
        encoder = random_encoder(SMALL).requires_grad_(with_gradients)
        words = [f"{index:03}" + "b" * (index % 58) for index in range(600)]
        together = encoder(BYTES.batch([words]))[0]
        for index in (0, 57, 255, 256, 599):
            alone = encoder(BYTES.batch([[words[index]]]))[0, 0]
            torch.testing.assert_close(together[index], alone, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("shape", [(50,), (6, 50), (2, 3, 50), (3, 1, 2, 50)])
    def test_ids_may_have_any_leading_shape(self, shape):
        encoder = random_encoder(SMALL)
        character_ids = BYTES.batch([["a", "bc", "a", "d", "é", "a" * 60]])[0]
        character_ids = character_ids[: torch.Size(shape[:-1]).numel()]
        vectors = encoder(character_ids.reshape(shape))
        assert vectors.shape == (*shape[:-1], SMALL.projection_dim)
        assert torch.equal(vectors.flatten(), encoder(character_ids).flatten())

    def test_a_new_encoder_is_initialised_as_in_bilm_tf(self):
        encoder = CharacterEncoder(SMALL)
        assert not encoder.embedding.weight[0].any()
        assert encoder.embedding.weight[1:].abs().max() <= 1.0
        biases = {name: value for name, value in encoder.named_parameters() if name.endswith("bias")}
        assert len(biases) == 3 + 2 * 2 + 1
        for name, bias in biases.items():
            assert torch.equal(bias, torch.full_like(bias, -2.0 if "carry" in name else 0.0)), name


class TestDistinctRows:
    @settings(max_examples=60)
    @given(
        st.data(), st.integers(0, 9), st.integers(0, 4), st.sampled_from([[0, 1], [0, 2**15], [-1, 2**16 - 1]]),
        st.booleans(),
    )  # fmt: skip
    def test_distinct_rows_and_positions_rebuild_the_matrix(self, data, n_rows, n_columns, ids, as_on_a_gpu):
        rows = data.draw(st.lists(st.tuples(*[st.sampled_from(ids)] * n_columns), min_size=n_rows, max_size=n_rows))
        matrix = torch.tensor(rows, dtype=torch.long).view(n_rows, n_columns)
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setitem(STACKED_ON, "cpu", as_on_a_gpu)
            distinct, positions = distinct_rows(matrix)
        assert torch.equal(distinct[positions], matrix)
        assert len(distinct) == len(set(rows))
