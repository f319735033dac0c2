from collections.abc import Iterator

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Vocabulary
from allennlp.modules import TokenEmbedder
from allennlp.modules.seq2vec_encoders import CnnEncoder, LstmSeq2VecEncoder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.modules import DistinctCharactersEncoder, UnpaddedCnn

N_CHARACTERS, DIM = 5, 3


@pytest.fixture(autouse=True, scope="module")
def double_precision() -> Iterator[None]:
    """AllenNLP's mask has the default type, and overflows in float64 if that is float32."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def both(encoder: str = "elmo_cnn", dropout: float = 0.0) -> tuple[DistinctCharactersEncoder, TokenCharactersEncoder]:
    """Ours, and AllenNLP's with the same weights."""
    torch.manual_seed(0)
    encoders = {
        "elmo_cnn": lambda: (UnpaddedCnn(DIM, 4, (2, 3)), CnnEncoder(DIM, 4, (2, 3))),
        "lstm": lambda: (LstmSeq2VecEncoder(DIM, 8), LstmSeq2VecEncoder(DIM, 8)),
    }[encoder]()
    embeddings = (Embedding(DIM, N_CHARACTERS) for _ in encoders)
    ours, theirs = (
        kind(embedding, encoder, dropout).double()
        for kind, embedding, encoder in zip(
            (DistinctCharactersEncoder, TokenCharactersEncoder), embeddings, encoders, strict=True
        )
    )
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def results(embedder: TokenEmbedder, characters: torch.Tensor) -> list[torch.Tensor]:
    vectors = embedder(characters)
    # A weight for each place: equal words have different gradients.
    weights = torch.linspace(-1, 1, vectors.numel(), dtype=vectors.dtype).view(vectors.shape)
    return [vectors, *torch.autograd.grad((vectors * weights).sum(), list(embedder.parameters()))]


def padded(sentences: list[list[list[int]]]) -> torch.Tensor:
    n_words, n_characters = max(map(len, sentences)), 4
    characters = torch.zeros(len(sentences), n_words, n_characters, dtype=torch.long)
    for row, sentence in enumerate(sentences):
        for place, word in enumerate(sentence):
            characters[row, place, : len(word)] = torch.tensor(word)
    return characters


words = st.lists(st.integers(1, N_CHARACTERS - 1), min_size=1, max_size=4)


class TestDistinctCharactersEncoder:
    @settings(max_examples=15)
    @given(
        st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=4), st.sampled_from(["elmo_cnn", "lstm"])
    )
    def test_it_equals_allennlps(self, sentences, encoder):
        """Oracle: AllenNLP's `character_encoding` with its `cnn` or `lstm`, values and gradients."""
        ours, theirs = both(encoder)
        characters = padded(sentences)
        torch.testing.assert_close(results(ours, characters), results(theirs, characters), rtol=1e-9, atol=1e-12)

    def test_checkpoints_fit_allennlps(self):
        """Oracle: the names of the weights, with and without dropout."""
        for dropout in (0.0, 0.5):
            ours, theirs = both(dropout=dropout)
            assert list(ours.state_dict()) == list(theirs.state_dict())
            ours.load_state_dict(theirs.state_dict())

    def test_each_distinct_word_is_encoded_once(self):
        """Oracle: the number of words that reach the encoder, padding among them."""
        ours, _ = both()
        seen = []
        ours._encoder._module.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
        ours(padded([[[1, 2], [3], [1, 2]], [[3]]]))
        assert seen == [3]

    def test_each_place_has_a_dropout_of_its_own(self):
        """Oracle: the zeros, about half of many, at different units in equal words; none in evaluation."""
        ours, theirs = both("lstm", dropout=0.5)
        characters = padded([[[1, 2]] * 200])
        dropped = ours(characters)[0] == 0
        assert 0.45 < dropped.double().mean() < 0.55
        assert len(dropped.unique(dim=0)) > 1
        torch.testing.assert_close(ours.eval()(characters), theirs.eval()(characters))

    def test_a_batch_may_have_no_words(self):
        """Oracle: the shape, and AllenNLP's embedder for words that are all padding."""
        ours, theirs = both()
        for shape in [(0, 3, 4), (2, 0, 4), (0, 0, 0)]:
            assert ours(torch.zeros(shape, dtype=torch.long)).shape == (*shape[:2], 8)
        nothing = torch.zeros(2, 3, 4, dtype=torch.long)
        torch.testing.assert_close(results(ours, nothing), results(theirs, nothing))
        assert torch.equal(ours(nothing[..., :0]), torch.zeros(2, 3, 8).double())

    def test_it_is_made_from_a_config(self):
        """Oracle: AllenNLP's registry; a vocabulary that grows changes the embedding as it does AllenNLP's."""
        vocabulary = Vocabulary({"token_characters": dict.fromkeys("abc", 1)})
        params = Params(
            {
                "type": "elmo_character_encoding",
                "embedding": {"embedding_dim": 3, "vocab_namespace": "token_characters"},
                "encoder": {"type": "elmo_cnn", "embedding_dim": 3, "num_filters": 4, "ngram_filter_sizes": [3]},
                "dropout": 0.25,
            }
        )
        embedder = TokenEmbedder.from_params(params, vocab=vocabulary)
        assert isinstance(embedder, DistinctCharactersEncoder)
        assert embedder.get_output_dim() == 4
        assert embedder.dropout.p == 0.25
        assert embedder.state_dict()["_embedding._module.weight"].shape == (5, 3)
