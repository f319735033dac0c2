"""
The plain model is the oracle of the fast biLM, so it is compared with the original code and with
AllenNLP first.
"""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.bilm.plain import PlainBilm, log_likelihood, scalar_mix
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from tests.bilm.helpers import (
    SMALL,
    allennlp_layers,
    assert_layers_equal,
    batches,
    bilm_options,
    plain_layers,
    plain_of,
    random_bilm,
)
from tests.paths import REFERENCE, SHIPPED_BILM, bilm_files

BATCH = [["The", "cat", "sat", "."], [], ["Encyclopædia", "😀", "The"], ["x" * 60]]
TOLERANCES = {torch.float32: 3e-5, torch.float64: 1e-10}
# Relative to the largest gradient of a parameter.
TOLERANCES_OF_GRADIENTS = {torch.float32: 1e-4, torch.float64: 1e-9}


def loss_of(layers: Any) -> torch.Tensor:
    return sum((layer * (1.0 + layer).sin()).sum() for layer in layers)


def assert_gradients_equal(bilm: Bilm, plain: PlainBilm, tolerance: float) -> None:
    parameters = dict(bilm.named_parameters())
    plain_parameters = dict(plain.named_parameters())
    assert parameters.keys() == plain_parameters.keys()
    for name, parameter in parameters.items():
        expected = plain_parameters[name].grad
        atol = tolerance * (float(expected.abs().max()) + 1e-3)
        torch.testing.assert_close(parameter.grad, expected, rtol=0, atol=atol, msg=name)


def test_it_equals_the_original_outputs():
    """
    The top layer as the original TensorFlow code computed it, sentence after sentence with carried
    states.
    """
    folder = REFERENCE / "bilm_tf"
    plain = PlainBilm.from_files(folder / "options.json", folder / "lm_weights.hdf5")
    plain.requires_grad_(False)
    documents = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    for number, sentences in enumerate(documents):
        states = {}
        with h5py.File(folder / f"lm_embeddings_{number}.hdf5") as file:
            for index, sentence in enumerate(sentences):
                words = sentence.split() if isinstance(sentence, str) else sentence
                top_layer = plain(words, states)[-1, 1:-1]
                # Shape: (n_words, 32)
                expected = np.concatenate(list(file[str(index)][...]), -1)
                np.testing.assert_allclose(top_layer.numpy(), expected, rtol=0, atol=1e-5)


def test_its_states_equal_those_that_allennlp_carries(files):
    from allennlp.modules.elmo import _ElmoBiLm

    options, weights = files
    plain = PlainBilm.from_files(options, weights).requires_grad_(False)
    allennlp_bilm = _ElmoBiLm(options, weights)
    states = {}
    for words in [*BATCH, *BATCH]:
        # AllenNLP's biLM rejects a batch without words.
        if words:
            expected = allennlp_layers(allennlp_bilm, BYTES.batch([words]))
            layers = plain(words, states)[:, None, 1:-1]
            assert_layers_equal(list(layers), expected, 1e-5)


def test_it_equals_allennlps_elmo(files):
    from allennlp.modules.elmo import Elmo

    options, weights = files
    scalars = [0.3, -0.2, 0.5]
    elmo = Elmo(
        options,
        weights,
        num_output_representations=1,
        dropout=0.0,
        scalar_mix_parameters=scalars,
    )
    (expected,) = elmo(BYTES.batch(BATCH))["elmo_representations"]
    plain = PlainBilm.from_files(options, weights).requires_grad_(False)
    mix = scalar_mix(torch.stack(plain_layers(plain, BATCH)), torch.tensor(scalars))
    torch.testing.assert_close(mix, expected, rtol=0, atol=1e-5)


class TestTheFastBilmEqualsIt:
    @given(bilm_options(), st.booleans(), batches(), st.integers(0, 1000))
    def test_at_any_size(self, options, residual, sentences, seed):
        """In float64, because in float32 a filter could have its maximum elsewhere."""
        options = dataclasses.replace(options, residual=residual)
        bilm = random_bilm(options, seed=seed, std=0.5).double().requires_grad_()
        plain = plain_of(bilm)
        layers = bilm(sentences).layers
        expected = plain_layers(plain, sentences)
        assert_layers_equal(layers, expected, 1e-10)
        with torch.no_grad():
            assert_layers_equal(bilm(sentences).layers, expected, 1e-10)
        loss_of(layers).backward()
        loss_of(expected).backward()
        assert_gradients_equal(bilm, plain, 1e-9)

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_with_clips(self, dtype):
        options = dataclasses.replace(SMALL, cell_clip=0.4, projection_clip=0.3)
        bilm = random_bilm(options, seed=3, std=0.5).to(dtype).requires_grad_()
        plain = plain_of(bilm)
        layers = bilm(BATCH).layers
        expected = plain_layers(plain, BATCH)
        assert (expected[1].abs() == torch.tensor(0.3, dtype=dtype)).any()
        assert_layers_equal(layers, expected, TOLERANCES[dtype])
        loss_of(layers).backward()
        loss_of(expected).backward()
        assert_gradients_equal(bilm, plain, TOLERANCES_OF_GRADIENTS[dtype])

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_at_the_included_size(self, news, dtype):
        options, weights = bilm_files(SHIPPED_BILM)
        bilm = Bilm.from_files(options, weights).to(dtype).requires_grad_(False)
        plain = PlainBilm.from_files(options, weights).to(dtype).requires_grad_(False)
        sentences = news[:8]
        expected = plain_layers(plain, sentences)
        assert_layers_equal(bilm(sentences).layers, expected, TOLERANCES[dtype])

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_in_training(self, dtype):
        """
        Each word of the batch has a number of its own in the softmax; the last two are the
        boundaries.
        """
        torch.manual_seed(0)
        bilm = random_bilm().to(dtype).requires_grad_()
        n_words = sum(map(len, BATCH))
        softmax = LmSoftmax(n_words + 2, SMALL.projection_dim).to(dtype)
        plain = plain_of(bilm)
        weight = softmax.weight.detach().clone().requires_grad_()
        bias = softmax.bias.detach().clone().requires_grad_()
        numbers = torch.arange(n_words).split([len(sentence) for sentence in BATCH])
        begin = torch.tensor([n_words])
        end = torch.tensor([n_words + 1])

        def fast_loss() -> torch.Tensor:
            contexts = bilm.contexts(BATCH)
            return softmax(contexts.hidden.flatten(0, 1), contexts.targets.flatten())

        def plain_loss() -> torch.Tensor:
            losses = []
            for words, targets in zip(BATCH, numbers, strict=True):
                bounded = torch.cat([begin, targets, end])
                losses.append(-log_likelihood(plain(words)[-1], bounded, weight, bias).sum())
            return sum(losses)

        def losses_in_training(
            loss_function: Callable[[], torch.Tensor], parameters: list[torch.nn.Parameter]
        ) -> list[torch.Tensor]:
            optimizer = torch.optim.SGD(parameters, lr=0.05)
            losses = []
            for _ in range(3):
                optimizer.zero_grad()
                loss = loss_function()
                loss.backward()
                optimizer.step()
                losses.append(loss)
            return losses

        losses = losses_in_training(fast_loss, [*bilm.parameters(), *softmax.parameters()])
        expected_losses = losses_in_training(plain_loss, [*plain.parameters(), weight, bias])
        tolerance = TOLERANCES[dtype]
        assert losses[2] < 0.97 * losses[0]
        torch.testing.assert_close(losses, expected_losses, rtol=tolerance, atol=0)
        pairs = zip(bilm.named_parameters(), plain.parameters(), strict=True)
        for (name, parameter), expected in pairs:
            torch.testing.assert_close(parameter, expected, rtol=0, atol=tolerance, msg=name)
        torch.testing.assert_close(softmax.weight, weight, rtol=0, atol=tolerance)
