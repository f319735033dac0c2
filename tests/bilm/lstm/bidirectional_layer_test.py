import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence

from elmo_tasks.bilm.lstm.bidirectional_layer import BidirectionalLayer
from elmo_tasks.bilm.lstm.projected_lstm import ProjectedLstm
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.plain import Lstm


def random_lstm(seed: int = 0, std: float = 0.7, **kwargs) -> ProjectedLstm:
    options = {**dict(cell_dim=5, projection_dim=2, cell_clip=None, projection_clip=None), **kwargs}
    lstm = ProjectedLstm(BilmOptions(**options)).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    return lstm


def random_inputs(lstms: list[ProjectedLstm], lengths: list[int], seed: int = 0):
    """For each LSTM, sentences from long to short."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    dim = lstms[0].projection.size(1)
    return [[draw(length, dim) for length in sorted(lengths, reverse=True)] for _ in lstms]


def run_lstms(lstms: list[ProjectedLstm], sentences):
    """For each LSTM, the outputs per sentence."""
    packed = [pack_sequence(some) for some in sentences]
    inputs = torch.stack([each.data for each in packed])
    batch_sizes = packed[0].batch_sizes.tolist()
    outputs = BidirectionalLayer(lstms)(inputs, batch_sizes)
    return [unpack_sequence(PackedSequence(out, packed[0].batch_sizes)) for out in outputs]


CLIPS = st.none() | st.floats(0.05, 2.0) | st.integers(1, 2)


class TestBidirectionalLayer:
    @pytest.mark.parametrize("with_gradients", [False, True])
    @given(
        dims=st.tuples(st.integers(1, 5), st.integers(1, 4)),
        cell_clip=CLIPS,
        projection_clip=CLIPS,
        n_lstms=st.integers(1, 3),
        lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
        seed=st.integers(0, 1000),
    )
    def test_they_equal_the_plain_ones(
        self, with_gradients, dims, cell_clip, projection_clip, n_lstms, lengths, seed
    ):
        kwargs = dict(zip(("cell_dim", "projection_dim"), dims, strict=True))
        clips = dict(cell_clip=cell_clip, projection_clip=projection_clip)
        lstms = [random_lstm(seed + i, **kwargs, **clips) for i in range(n_lstms)]
        sentences = random_inputs(lstms, lengths, seed)
        with torch.set_grad_enabled(with_gradients):
            outputs = run_lstms(lstms, sentences)
        assert outputs[0][0].requires_grad == with_gradients
        for index, lstm in enumerate(lstms):
            plain = Lstm(BilmOptions(**kwargs, **clips)).double()
            plain.load_state_dict(lstm.state_dict())
            for row, sentence in enumerate(sentences[index]):
                torch.testing.assert_close(
                    outputs[index][row], plain(sentence)[0], rtol=0, atol=1e-12
                )

    def test_the_clip_takes_effect(self):
        lstm = random_lstm(std=3.0, projection_clip=0.3)
        (outputs,) = run_lstms([lstm], random_inputs([lstm], [6, 4]))
        assert torch.cat(outputs).abs().max().item() == 0.3

    @pytest.mark.parametrize("clips", [dict(), dict(cell_clip=0.5, projection_clip=0.4)])
    def test_gradients_are_right(self, clips):
        lstms = [random_lstm(0, **clips), random_lstm(1, **clips)]
        packed = [pack_sequence(some) for some in random_inputs(lstms, [3, 3, 1])]
        joint = BidirectionalLayer(lstms)
        parameters = [parameter for lstm in lstms for parameter in lstm.parameters()]

        def run(inputs, *_):
            # The other tensors are the parameters of the LSTMs, which gradcheck changes in place.
            return joint(inputs, packed[0].batch_sizes.tolist())

        inputs = torch.stack([each.data for each in packed]).requires_grad_()
        assert torch.autograd.gradcheck(run, [inputs, *parameters])

    def test_weights_that_change_are_read_again(self):
        lstm = random_lstm().requires_grad_(False)
        joint = BidirectionalLayer([lstm])
        inputs = torch.randn(1, 3, 2, dtype=torch.float64)

        def is_fresh() -> bool:
            new = BidirectionalLayer([lstm])
            outputs = [each(inputs.to(lstm.kernel.dtype), [2, 1]) for each in (joint, new)]
            return torch.equal(*outputs)

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
