"""Tests of `Bilm.contexts`, the vectors that predict the words."""

import dataclasses

import pytest
import torch
from hypothesis import given
from torch.nn.functional import dropout

from elmo_tasks.bilm.outputs import BilmContexts
from tests.bilm.helpers import SMALL, batches, plain_of, random_bilm

DIM = SMALL.projection_dim
BATCH = [["The", "cat", "sat", "."], [], ["cat", "The", "cat"], ["x" * 60]]


def predictions(contexts: BilmContexts, direction: int) -> dict[tuple[int, int], torch.Tensor]:
    """The vector that predicts each word, by the row of the sentence and the number of the word."""
    keys = list(zip(contexts.rows.tolist(), contexts.targets[direction].tolist(), strict=True))
    assert len(set(keys)) == len(keys) == len(contexts.hidden[direction])
    return dict(zip(keys, contexts.hidden[direction], strict=True))


def numbers_of(sentences: list[list[str]]) -> list[list[int]]:
    """The words of the batch, numbered row by row."""
    numbered = []
    n_before = 0
    for sentence in sentences:
        numbered.append(list(range(n_before, n_before + len(sentence))))
        n_before += len(sentence)
    return numbered


class TestContexts:
    @given(batches())
    def test_every_word_is_predicted_once_in_each_direction(self, bilm, sentences):
        contexts = bilm.contexts(sentences)
        n_words = sum(map(len, sentences))
        for direction, boundary in ((0, n_words + 1), (1, n_words)):
            expected = set()
            for row, numbers in enumerate(numbers_of(sentences)):
                expected.update((row, number) for number in [*numbers, boundary])
            assert set(predictions(contexts, direction)) == expected
        assert contexts.hidden.shape == (2, n_words + len(sentences), DIM)

    @given(batches())
    def test_a_word_is_predicted_from_the_top_layer_at_its_neighbour(self, bilm, sentences):
        contexts = bilm.contexts(sentences)
        top = bilm(sentences).layers[-1]
        n_words = sum(map(len, sentences))
        forward = predictions(contexts, 0)
        backward = predictions(contexts, 1)
        for row, numbers in enumerate(numbers_of(sentences)):
            padded = [n_words, *numbers, n_words + 1]
            for vector, before, after in zip(top[row], padded, padded[2:], strict=False):
                torch.testing.assert_close(forward[row, after], vector[:DIM], rtol=0, atol=1e-6)
                torch.testing.assert_close(backward[row, before], vector[DIM:], rtol=0, atol=1e-6)

    @given(batches())
    def test_the_packed_layers_are_those_of_forward(self, bilm, sentences):
        contexts = bilm.contexts(sentences)
        positions = contexts.sentences.targets
        for packed, layer in zip(contexts.layers, bilm(sentences).layers, strict=True):
            words = contexts.sentences.of_words(packed)
            expected = layer.flatten(0, 1)[positions]
            torch.testing.assert_close(words, expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("residual", [True, False])
    def test_dropout_applies_to_the_inputs_as_in_bilm_tf(self, residual):
        """The residual connection adds the input after dropout."""
        options = dataclasses.replace(SMALL, residual=residual)
        bilm = random_bilm(options)
        plain = plain_of(bilm).requires_grad_(False)

        def lstms(layer: int, inputs: torch.Tensor) -> torch.Tensor:
            forward_output, _ = plain.forward_layers[layer](inputs[0])
            backward_output, _ = plain.backward_layers[layer](inputs[1])
            return torch.stack([forward_output, backward_output])

        # Shape: (4, projection_dim)
        vectors = plain(["a", "b"])[0, :, :DIM]
        torch.manual_seed(3)
        contexts = bilm.contexts([["a", "b"]], dropout=0.5)
        torch.manual_seed(3)
        # Shape: (2, 4, projection_dim)
        inputs = dropout(torch.stack([vectors, vectors.flip(0)]), 0.5)
        layer_0 = dropout(lstms(0, inputs), 0.5)
        layer_1 = lstms(1, layer_0)
        if residual:
            layer_1 = layer_1 + layer_0
        expected = dropout(layer_1[:, :3], 0.5)
        torch.testing.assert_close(contexts.hidden, expected, rtol=0, atol=1e-6)
        assert contexts.targets.tolist() == [[0, 1, 3], [1, 0, 2]]
