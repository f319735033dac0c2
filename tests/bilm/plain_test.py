"""
The plain model is the oracle of the fast biLM, so it is compared with the original code and with
AllenNLP first.
"""

import dataclasses
import json
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
# Of the layers, and of gradients, relative to the largest one of a parameter.
TOLERANCES = {torch.float32: (3e-5, 1e-4), torch.float64: (1e-10, 1e-9)}


def loss_of(layers: Any) -> torch.Tensor:
    return sum((layer * (1.0 + layer).sin()).sum() for layer in layers)


def assert_gradients_equal(
    ours: torch.nn.Module, theirs: torch.nn.Module, tolerance: float
) -> None:
    expected = dict(theirs.named_parameters())
    assert expected.keys() == dict(ours.named_parameters()).keys()
    for name, parameter in ours.named_parameters():
        gradient = expected[name].grad
        scale = float(gradient.abs().max()) + 1e-3
        torch.testing.assert_close(
            parameter.grad, gradient, rtol=0, atol=tolerance * scale, msg=name
        )


def test_it_equals_the_original_outputs():
    """
    The top layer as the original TensorFlow code computed it, sentence after sentence with carried
    states.
    """
    folder = REFERENCE / "bilm_tf"
    plain = PlainBilm.from_files(
        folder / "options.json", folder / "lm_weights.hdf5"
    ).requires_grad_(False)
    for k, sentences in enumerate(
        json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    ):
        states = {}
        with h5py.File(folder / f"lm_embeddings_{k}.hdf5") as file:
            for index, sentence in enumerate(sentences):
                words = sentence.split() if isinstance(sentence, str) else sentence
                # Shape: (n_words, 32)
                expected = np.concatenate(list(file[str(index)][...]), -1)
                np.testing.assert_allclose(
                    plain(words, states)[-1, 1:-1].numpy(), expected, rtol=0, atol=1e-5
                )


def test_its_states_equal_those_that_allennlp_carries(files):
    from allennlp.modules.elmo import _ElmoBiLm

    plain, theirs, states = (
        PlainBilm.from_files(*files).requires_grad_(False),
        _ElmoBiLm(*files),
        {},
    )
    for words in [*BATCH, *BATCH]:
        # AllenNLP's biLM rejects a batch without words.
        if words:
            expected = allennlp_layers(theirs, BYTES.batch([words]))
            assert_layers_equal([*plain(words, states)[:, None, 1:-1]], expected, 1e-5)


def test_it_equals_allennlps_elmo(files):
    from allennlp.modules.elmo import Elmo

    weights = [0.3, -0.2, 0.5]
    theirs = Elmo(*files, num_output_representations=1, dropout=0.0, scalar_mix_parameters=weights)
    layers = plain_layers(PlainBilm.from_files(*files).requires_grad_(False), BATCH)
    found = scalar_mix(torch.stack(layers), torch.tensor(weights))
    torch.testing.assert_close(
        found, theirs(BYTES.batch(BATCH))["elmo_representations"][0], rtol=0, atol=1e-5
    )


class TestTheFastBilmEqualsIt:
    @given(bilm_options(), st.booleans(), batches(), st.integers(0, 1000))
    def test_at_any_size(self, options, residual, sentences, seed):
        """In float64, because in float32 a filter could have its maximum elsewhere."""
        options = dataclasses.replace(options, residual=residual)
        bilm = random_bilm(options, seed=seed, std=0.5).double().requires_grad_()
        plain = plain_of(bilm)
        ours, expected = bilm(sentences).layers, plain_layers(plain, sentences)
        assert_layers_equal(ours, expected, 1e-10)
        with torch.no_grad():
            assert_layers_equal(bilm(sentences).layers, expected, 1e-10)
        loss_of(ours).backward(), loss_of(expected).backward()
        assert_gradients_equal(bilm, plain, 1e-9)

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_with_clips(self, dtype):
        options = dataclasses.replace(SMALL, cell_clip=0.4, projection_clip=0.3)
        bilm = random_bilm(options, seed=3, std=0.5).to(dtype).requires_grad_()
        plain = plain_of(bilm)
        ours, expected = bilm(BATCH).layers, plain_layers(plain, BATCH)
        assert (expected[1].abs() == torch.tensor(0.3, dtype=dtype)).any()
        of_layers, of_gradients = TOLERANCES[dtype]
        assert_layers_equal(ours, expected, of_layers)
        loss_of(ours).backward(), loss_of(expected).backward()
        assert_gradients_equal(bilm, plain, of_gradients)

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_at_the_included_size(self, news, dtype):
        files = bilm_files(SHIPPED_BILM)
        bilm, plain = (
            kind.from_files(*files).to(dtype).requires_grad_(False) for kind in (Bilm, PlainBilm)
        )
        assert_layers_equal(
            bilm(news[:8]).layers, plain_layers(plain, news[:8]), TOLERANCES[dtype][0]
        )

    @pytest.mark.parametrize("dtype", TOLERANCES)
    def test_in_training(self, dtype):
        """
        Each word of the batch has a number of its own in the softmax; the last two are the
        boundaries.
        """
        torch.manual_seed(0)
        bilm, n_words = random_bilm().to(dtype).requires_grad_(), sum(map(len, BATCH))
        softmax = LmSoftmax(n_words + 2, SMALL.projection_dim).to(dtype)
        plain = plain_of(bilm)
        weight, bias = (each.detach().clone().requires_grad_() for each in softmax.parameters())
        numbers = torch.arange(n_words).split([len(sentence) for sentence in BATCH])
        ends = torch.tensor([n_words]), torch.tensor([n_words + 1])

        def fast_loss() -> torch.Tensor:
            contexts = bilm.contexts(BATCH)
            return softmax(contexts.hidden.flatten(0, 1), contexts.targets.flatten())

        def plain_loss() -> torch.Tensor:
            bounded = [torch.cat([ends[0], each, ends[1]]) for each in numbers]
            pairs = zip(BATCH, bounded, strict=True)
            return -sum(
                log_likelihood(plain(words)[-1], each, weight, bias).sum() for words, each in pairs
            )

        losses = []
        for loss, parameters in (
            (fast_loss, [*bilm.parameters(), *softmax.parameters()]),
            (plain_loss, [*plain.parameters(), weight, bias]),
        ):
            optimizer = torch.optim.SGD(parameters, lr=0.05)
            for _ in range(3):
                optimizer.zero_grad()
                losses.append(loss())
                losses[-1].backward()
                optimizer.step()
        tolerance = TOLERANCES[dtype][0]
        assert losses[2] < 0.97 * losses[0]
        torch.testing.assert_close(losses[:3], losses[3:], rtol=tolerance, atol=0)
        for (name, parameter), expected in zip(
            bilm.named_parameters(), plain.parameters(), strict=True
        ):
            torch.testing.assert_close(parameter, expected, rtol=0, atol=tolerance, msg=name)
        torch.testing.assert_close(softmax.weight, weight, rtol=0, atol=tolerance)
