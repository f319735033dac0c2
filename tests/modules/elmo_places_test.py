import torch
from allennlp.common import Lazy, Params
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.text_field_embedders import BasicTextFieldEmbedder

from elmo_tasks.modules import concat_dim, concat_embedding, construct_embedders


def lazy(config: dict) -> Lazy[TextFieldEmbedder]:
    return Lazy(BasicTextFieldEmbedder, params=Params({"token_embedders": config}))


class TestConstructEmbedders:
    def test_the_places_share_the_bilm_and_one_pass_and_not_the_mix(self, pretrained, batch, count_passes):
        """Oracle: by hand: one biLM, run once; each place with its own gamma."""
        bilm = pretrained()
        passes = count_passes(bilm)
        elmo = {"elmo": {"type": "elmo"}}
        places = construct_embedders(lazy(elmo), lazy(elmo), bilm)
        mixes = [place.token_embedder_elmo.mix for place in places]
        with torch.no_grad():
            mixes[1].gamma.fill_(2.0)
        tokens = {"elmo": {"elmo_tokens": batch}}
        vectors = [place(tokens) for place in places]
        assert len(passes) == 1
        torch.testing.assert_close(2 * vectors[0], vectors[1])

    def test_without_a_bilm_the_embedders_are_as_their_configs_say(self):
        """Oracle: the widths by hand."""
        configs = [{"tokens": {"type": "embedding", "num_embeddings": 3, "embedding_dim": dim}} for dim in (7, 8)]
        places = construct_embedders(lazy(configs[0]), lazy(configs[1]), None)
        assert [place.get_output_dim() for place in places] == [7, 8]
        assert construct_embedders(lazy(configs[0]), None, None)[1] is None


class TestBeside:
    def test_vectors_follow_the_hidden_units(self, pretrained, batch):
        """Oracle: the two parts by themselves."""
        embedder, _ = construct_embedders(lazy({"elmo": {"type": "elmo"}}), None, pretrained())
        tokens = {"elmo": {"elmo_tokens": batch}}
        hidden = torch.randn(*batch.shape[:2], 5)
        both = concat_embedding(hidden, embedder, tokens)
        assert torch.equal(both[..., :5], hidden)
        assert torch.equal(both[..., 5:], embedder(tokens))
        assert concat_dim(5, embedder) == both.size(-1)

    def test_without_an_embedder_nothing_changes(self, batch):
        """Oracle: the input."""
        hidden = torch.randn(*batch.shape[:2], 5)
        assert concat_embedding(hidden, None, {"elmo": {"elmo_tokens": batch}}) is hidden
        assert concat_dim(5, None) == 5
