from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from elmo_tasks.bilm.lstm.bidirectional_layer import BidirectionalLayer
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.plain import Lstm

NO_CLIPS = BilmOptions(cell_dim=5, projection_dim=2, cell_clip=None, projection_clip=None)


def random_lstm(seed: int = 0, std: float = 0.7, **changes: Any) -> ProjectedLstm:
    """An LSTM with the options `NO_CLIPS`, or with changes of them."""
    lstm = ProjectedLstm(replace(NO_CLIPS, **changes)).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    return lstm


Sentences = list[torch.Tensor]
"""Of shape `(n_words, dim)`, each."""


def random_inputs(lstms: list[ProjectedLstm], lengths: list[int], seed: int = 0) -> list[Sentences]:
    """For each LSTM, sentences from long to short."""
    generator = torch.Generator().manual_seed(seed)
    dim = lstms[0].projection.size(1)

    def sentence(length: int) -> torch.Tensor:
        return torch.randn(length, dim, generator=generator, dtype=torch.float64)

    inputs = []
    for _ in lstms:
        inputs.append([sentence(length) for length in sorted(lengths, reverse=True)])
    return inputs


def packed(sentences_of_lstms: list[Sentences]) -> tuple[torch.Tensor, torch.Tensor]:
    """The words of all LSTMs, of shape `(n_lstms, n_words, dim)`, and the sizes of the steps."""
    sequences = [pack_sequence(sentences) for sentences in sentences_of_lstms]
    inputs = torch.stack([sequence.data for sequence in sequences])
    return inputs, sequences[0].batch_sizes


def run_lstms(
    lstms: list[ProjectedLstm], sentences_of_lstms: list[Sentences]
) -> list[list[torch.Tensor]]:
    """For each LSTM, the outputs per sentence."""
    inputs, batch_sizes = packed(sentences_of_lstms)
    outputs = BidirectionalLayer(lstms)(inputs, batch_sizes.tolist())
    return [unpack_sequence(PackedSequence(output, batch_sizes)) for output in outputs]


CLIPS = st.none() | st.floats(0.05, 2.0) | st.integers(1, 2)


class TestBidirectionalLayer:
    @pytest.mark.parametrize("with_gradients", [False, True])
    @given(
        cell_dim=st.integers(1, 5),
        projection_dim=st.integers(1, 4),
        cell_clip=CLIPS,
        projection_clip=CLIPS,
        n_lstms=st.integers(1, 3),
        lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
        seed=st.integers(0, 1000),
    )
    def test_they_equal_the_plain_ones(
        self,
        with_gradients,
        cell_dim,
        projection_dim,
        cell_clip,
        projection_clip,
        n_lstms,
        lengths,
        seed,
    ):
        options = dict(
            cell_dim=cell_dim,
            projection_dim=projection_dim,
            cell_clip=cell_clip,
            projection_clip=projection_clip,
        )
        lstms = [random_lstm(seed + number, **options) for number in range(n_lstms)]
        sentences = random_inputs(lstms, lengths, seed)
        with torch.set_grad_enabled(with_gradients):
            outputs = run_lstms(lstms, sentences)
        assert outputs[0][0].requires_grad == with_gradients
        for number, lstm in enumerate(lstms):
            plain = Lstm(BilmOptions(**options)).double()
            plain.load_state_dict(lstm.state_dict())
            for output, sentence in zip(outputs[number], sentences[number], strict=True):
                expected, _ = plain(sentence)
                torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)

    def test_the_clip_takes_effect(self):
        lstm = random_lstm(std=3.0, projection_clip=0.3)
        (outputs,) = run_lstms([lstm], random_inputs([lstm], [6, 4]))
        assert torch.cat(outputs).abs().max().item() == 0.3

    @pytest.mark.parametrize("clips", [dict(), dict(cell_clip=0.5, projection_clip=0.4)])
    def test_gradients_are_right(self, clips):
        lstms = [random_lstm(0, **clips), random_lstm(1, **clips)]
        inputs, batch_sizes = packed(random_inputs(lstms, [3, 3, 1]))
        layer = BidirectionalLayer(lstms)
        parameters = chain.from_iterable(lstm.parameters() for lstm in lstms)

        def run(inputs: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
            # The other tensors are the parameters of the LSTMs, which gradcheck changes in place.
            return layer(inputs, batch_sizes.tolist())

        assert torch.autograd.gradcheck(run, [inputs.requires_grad_(), *parameters])

    def test_weights_that_change_are_read_again(self):
        lstm = random_lstm().requires_grad_(False)
        layer = BidirectionalLayer([lstm])
        words = torch.randn(1, 3, 2, dtype=torch.float64)

        def is_fresh() -> bool:
            inputs = words.to(lstm.kernel.dtype)
            expected = BidirectionalLayer([lstm])(inputs, [2, 1])
            return torch.equal(layer(inputs, [2, 1]), expected)

        assert is_fresh()
        lstm.kernel.mul_(2.0)
        assert is_fresh()
        lstm.load_state_dict(random_lstm(1).state_dict())
        assert is_fresh()
        lstm.load_state_dict(random_lstm(2).state_dict(), assign=True)
        lstm.requires_grad_(False)
        assert is_fresh()
        lstm.float()
        assert is_fresh()
