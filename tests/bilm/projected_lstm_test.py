import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functional_call
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from elmo_tasks.bilm.projected_lstm import ProjectedLstm


def random_lstm(seed: int = 0, std: float = 0.7, **kwargs) -> ProjectedLstm:
    lstm = ProjectedLstm(**{**dict(input_dim=3, cell_dim=5, projection_dim=2), **kwargs}).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in lstm.parameters():
        torch.nn.init.normal_(parameter, std=std, generator=generator)
    return lstm


def random_inputs(lstm: ProjectedLstm, lengths: list[int], seed: int = 0):
    """Sentences from the longest down, and a state for each."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    sentences = [draw(length, lstm.input_dim) for length in sorted(lengths, reverse=True)]
    return sentences, (draw(len(lengths), lstm.projection_dim), draw(len(lengths), lstm.cell_dim))


def run(lstm: ProjectedLstm, sentences, initial):
    """The outputs sentence by sentence, and the last state."""
    packed = pack_sequence(sentences)
    outputs, state = lstm(packed.data, packed.batch_sizes.tolist(), initial)
    return unpack_sequence(packed._replace(data=outputs)), state


def by_the_formula(lstm: ProjectedLstm, sentence, output, memory):
    """One sentence, word by word, unit by unit of the docstring's formula; NumPy only."""

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    kernel, bias, projection = (p.detach().numpy() for p in (lstm.kernel, lstm.bias, lstm.projection))
    w_x, w_h = kernel[: lstm.input_dim], kernel[lstm.input_dim :]
    c, n = lstm.cell_dim, len(sentence)
    outputs = np.zeros((n, lstm.projection_dim))
    for t in range(n) if lstm.go_forward else reversed(range(n)):
        gates = sentence[t] @ w_x + output @ w_h + bias
        i, g, f, o = gates[:c], gates[c : 2 * c], gates[2 * c : 3 * c], gates[3 * c :]
        memory = sigmoid(f + 1) * memory + sigmoid(i) * np.tanh(g)
        if lstm.cell_clip is not None:
            memory = np.minimum(np.maximum(memory, -lstm.cell_clip), lstm.cell_clip)
        output = (sigmoid(o) * np.tanh(memory)) @ projection
        if lstm.projection_clip is not None:
            output = np.minimum(np.maximum(output, -lstm.projection_clip), lstm.projection_clip)
        outputs[t] = output
    return outputs, output, memory


CLIPS = st.none() | st.floats(0.05, 2.0) | st.integers(1, 2)


class TestProjectedLstm:
    @settings(deadline=None, max_examples=100)
    @given(
        dims=st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4)),
        cell_clip=CLIPS,
        projection_clip=CLIPS,
        go_forward=st.booleans(),
        lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5),
        seed=st.integers(0, 1000),
    )
    def test_it_equals_the_formula(self, dims, cell_clip, projection_clip, go_forward, lengths, seed):
        """Oracle: a loop over sentences and words in NumPy, outputs and last states, from a random first state."""
        lstm = random_lstm(
            seed,
            input_dim=dims[0],
            cell_dim=dims[1],
            projection_dim=dims[2],
            cell_clip=cell_clip,
            projection_clip=projection_clip,
            go_forward=go_forward,
        )
        sentences, initial = random_inputs(lstm, lengths, seed)
        outputs, (last_output, last_memory) = run(lstm, sentences, initial)
        assert last_output.shape == (len(lengths), lstm.projection_dim)
        assert last_memory.shape == (len(lengths), lstm.cell_dim)
        for row, sentence in enumerate(sentences):
            expected = by_the_formula(lstm, sentence.numpy(), initial[0][row].numpy(), initial[1][row].numpy())
            ours = (outputs[row], last_output[row], last_memory[row])
            for our, plain in zip(ours, expected, strict=True):
                np.testing.assert_allclose(our.detach().numpy(), plain, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("clips", [(0.3, None), (None, 0.3), (0.3, 0.3)])
    def test_clips_bite(self, clips):
        """Oracle: with large weights some unit stands exactly at the clip, and none beyond it."""
        lstm = random_lstm(std=3.0, cell_clip=clips[0], projection_clip=clips[1])
        sentences, initial = random_inputs(lstm, [6, 4])
        outputs, (_, memory) = run(lstm, sentences, tuple(state * 0 for state in initial))
        for clip, values in zip(clips, (memory, torch.cat(outputs)), strict=True):
            assert (values.abs().max().item() == 0.3) == (clip is not None)

    @pytest.mark.parametrize("go_forward", [True, False])
    def test_the_last_state_is_the_output_where_each_sentence_was_left(self, go_forward):
        """Oracle: the outputs: of the last word of each sentence, read backward of the first."""
        lstm = random_lstm(go_forward=go_forward)
        sentences, initial = random_inputs(lstm, [5, 5, 3, 1, 1])
        outputs, (last_output, _) = run(lstm, sentences, initial)
        assert torch.equal(last_output, torch.stack([output[-1 if go_forward else 0] for output in outputs]))

    def test_it_is_torch_lstm_without_clips(self):
        """Oracle: `torch.nn.LSTM` with `proj_size`, its gates reordered and the forget gate's 1 in its bias."""
        lstm = random_lstm()
        theirs = torch.nn.LSTM(3, 5, proj_size=2).double()

        def reordered(weights: torch.Tensor) -> torch.Tensor:
            i, g, f, o = weights.chunk(4)
            return torch.cat([i, f, g, o])

        with torch.no_grad():
            theirs.weight_ih_l0.copy_(reordered(lstm.kernel[:3].T))
            theirs.weight_hh_l0.copy_(reordered(lstm.kernel[3:].T))
            theirs.bias_ih_l0.copy_(reordered(lstm.bias + lstm.forget_bias))
            theirs.bias_hh_l0.zero_()
            theirs.weight_hr_l0.copy_(lstm.projection.T)
        sentences, (output, memory) = random_inputs(lstm, [6, 3, 2])
        expected, (last_output, last_memory) = theirs(pack_sequence(sentences), (output[None], memory[None]))
        outputs, state = run(lstm, sentences, (output, memory))
        torch.testing.assert_close(torch.cat(outputs), torch.cat(unpack_sequence(expected)))
        torch.testing.assert_close(state, (last_output[0], last_memory[0]))

    @pytest.mark.parametrize("go_forward", [True, False])
    @pytest.mark.parametrize("clips", [dict(), dict(cell_clip=0.5, projection_clip=0.4)])
    def test_gradients_are_right(self, go_forward, clips):
        """Oracle: finite differences, of inputs, first state and parameters, through outputs and last state."""
        lstm = random_lstm(go_forward=go_forward, **clips)
        sentences, initial = random_inputs(lstm, [3, 3, 1])
        packed = pack_sequence(sentences)
        names, parameters = zip(*lstm.named_parameters(), strict=True)

        def flat(inputs, output, memory, *values):
            state = dict(zip(names, values, strict=True))
            outputs, last = functional_call(lstm, state, (inputs, packed.batch_sizes.tolist(), (output, memory)))
            return outputs, *last

        leaves = [tensor.detach().clone().requires_grad_() for tensor in (packed.data, *initial, *parameters)]
        assert torch.autograd.gradcheck(flat, leaves)

    def test_a_new_lstm_starts_as_tensorflow_says(self):
        """Oracle: Glorot and Bengio's bound for each matrix; a bias of zero (the 1 of the forget gate is no part)."""
        lstm = ProjectedLstm(input_dim=30, cell_dim=50, projection_dim=20)
        assert not lstm.bias.any()
        for weight in (lstm.kernel, lstm.projection):
            bound = (6 / sum(weight.shape)) ** 0.5
            assert bound * 0.9 < weight.abs().max().item() <= bound
        assert set(lstm.state_dict()) == {"kernel", "bias", "projection"}
