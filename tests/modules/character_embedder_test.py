import pickle

import pytest
import torch
from allennlp.modules.seq2vec_encoders import CnnEncoder, CnnHighwayEncoder, LstmSeq2VecEncoder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder
from allennlp.nn import Activation
from hypothesis import given
from hypothesis import strategies as st

from elmo_tasks.modules import DistinctCharactersEncoder, UnpaddedCnn

N_CHARACTERS = 5
DIM = 3


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    """AllenNLP's mask has the default dtype, and overflows in float64 if the default is float32."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def embedders(encoder="elmo_cnn", dropout=0.0):
    """Ours, and AllenNLP's with the same weights."""
    torch.manual_seed(0)
    if encoder == "elmo_cnn":
        our_encoder = UnpaddedCnn(DIM, 4, ngram_filter_sizes=(2, 3))
        their_encoder = CnnEncoder(DIM, 4, (2, 3))
    else:
        our_encoder = LstmSeq2VecEncoder(DIM, 8)
        their_encoder = LstmSeq2VecEncoder(DIM, 8)
    ours = DistinctCharactersEncoder(Embedding(DIM, N_CHARACTERS), our_encoder, dropout)
    theirs = TokenCharactersEncoder(Embedding(DIM, N_CHARACTERS), their_encoder, dropout)
    theirs.load_state_dict(ours.state_dict())
    return ours.double(), theirs.double()


def results(module, *inputs):
    """The output and its gradients with respect to the parameters and inputs."""
    output = module(*inputs)
    # A different weight per position gives equal words different gradients.
    weights = torch.linspace(-1, 1, output.numel()).view(output.shape)
    loss = (output * weights).sum() + (output**2).sum()
    leaves = list(module.parameters())
    for tensor in inputs:
        if tensor.requires_grad:
            leaves.append(tensor)
    return [output, *torch.autograd.grad(loss, leaves)]


def padded(sentences):
    n_timesteps = max(len(sentence) for sentence in sentences)
    characters = torch.zeros(len(sentences), n_timesteps, 4, dtype=torch.long)
    for row, sentence in enumerate(sentences):
        for position, word in enumerate(sentence):
            characters[row, position, : len(word)] = torch.tensor(word)
    return characters


words = st.lists(st.integers(1, N_CHARACTERS - 1), min_size=1, max_size=4)


class TestDistinctCharactersEncoder:
    @given(
        st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=4),
        st.sampled_from(["elmo_cnn", "lstm"]),
    )
    def test_it_equals_allennlps(self, sentences, encoder):
        ours, theirs = embedders(encoder)
        characters = padded(sentences)
        expected = results(theirs, characters)
        torch.testing.assert_close(results(ours, characters), expected, rtol=1e-9, atol=1e-12)

    def test_each_distinct_word_is_encoded_once(self):
        ours, _ = embedders()
        batch_sizes = []
        (cnn,) = [module for module in ours.modules() if isinstance(module, UnpaddedCnn)]
        cnn.register_forward_pre_hook(lambda module, inputs: batch_sizes.append(len(inputs[0])))
        ours(padded([[[1, 2], [3], [1, 2]], [[3]]]))
        # One is padding.
        assert batch_sizes == [3]

    def test_each_place_has_its_own_dropout(self):
        ours, theirs = embedders("lstm", dropout=0.5)
        characters = padded([[[1, 2]] * 200])
        dropped = ours(characters)[0] == 0
        assert 0.45 < dropped.double().mean() < 0.55
        assert len(dropped.unique(dim=0)) > 1
        torch.testing.assert_close(ours.eval()(characters), theirs.eval()(characters))


def cnns(**kwargs):
    torch.manual_seed(0)
    ours = UnpaddedCnn(DIM, 5, **kwargs)
    theirs = CnnEncoder(DIM, 5, **kwargs)
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def batch(lengths, timesteps):
    mask = torch.arange(timesteps) < torch.tensor(lengths)[:, None]
    return torch.randn(len(lengths), timesteps, DIM, requires_grad=True), mask


class TestUnpaddedCnn:
    @given(
        st.lists(st.integers(0, 8), min_size=1, max_size=9),
        st.sampled_from([(1,), (3,), (2, 3, 5)]),
        st.sampled_from(["relu", "tanh"]),
        st.sampled_from([None, 4]),
    )
    def test_it_equals_allennlps(self, lengths, widths, activation, output_dim):
        activation = Activation.by_name(activation)()
        ours, theirs = cnns(
            ngram_filter_sizes=widths, conv_layer_activation=activation, output_dim=output_dim
        )
        tokens, mask = batch(lengths, 8)
        expected = results(theirs, tokens, mask)
        torch.testing.assert_close(results(ours, tokens, mask), expected, rtol=1e-9, atol=1e-12)

    @given(
        st.lists(st.integers(0, 8), min_size=1, max_size=9),
        st.sampled_from([(1,), (3,), (2, 3, 5)]),
    )
    def test_with_partial_windows_a_word_has_one_window_per_character(self, lengths, widths):
        """Oracle: AllenNLP's `cnn` on each word alone, followed by zeros that its mask includes."""
        _, theirs = cnns(ngram_filter_sizes=widths)
        ours = UnpaddedCnn(DIM, 5, partial_windows=True, ngram_filter_sizes=widths)
        ours.load_state_dict(theirs.state_dict())
        tokens, mask = batch(lengths, 8)
        output = ours(tokens, mask)
        for row, length in enumerate(lengths):
            expected = torch.zeros(len(widths), 5)
            for number, width in enumerate(widths):
                if length:
                    zeros = tokens.new_zeros(width + 7, DIM)
                    word = torch.cat([tokens[row, :length], zeros])[None]
                    is_counted = torch.arange(word.size(1))[None] < length + width - 1
                    expected[number] = theirs(word, is_counted)[0].split(5)[number]
            torch.testing.assert_close(output[row], expected.flatten(), rtol=1e-9, atol=1e-12)

    def test_words_that_are_all_too_short_give_zeros_and_zero_gradients(self):
        ours, _ = cnns(ngram_filter_sizes=(3, 4))
        output, *gradients = results(ours, *batch([2, 2], 2))
        assert torch.equal(output, torch.zeros(2, 10))
        assert not any(gradient.any() for gradient in gradients)


def test_an_encoder_without_layer_normalisation_can_be_pickled():
    encoder = CnnHighwayEncoder(4, [(1, 3)], 1, 5, do_layer_norm=False)
    assert pickle.loads(pickle.dumps(encoder)).get_output_dim() == 5
