import json

import pytest
import torch
import transformers

from elmo_tasks.transformer.checkpoint import make_network, read_pieces
from elmo_tasks.transformer.transformer import Transformer
from elmo_tasks.transformer.word_pieces import SpecialPieces
from tests.transformer.checkpoints import FAMILIES, reference_layers

SENTENCES = [
    ["The", "Encyclopædia's", "cat", "sat", "on", "the", "mat", "."],
    ["Hello"],
    [],
    ["They", "can't", "visit", "Paris", ",", "1999", "😀", "today"],
]


@pytest.mark.parametrize("family", FAMILIES)
class TestFamilies:
    @pytest.mark.parametrize("pooling", ["first", "mean"])
    def test_the_layers_of_words_are_those_of_the_library(
        self, checkpoint, make_transformer, pieces_of, family, pooling
    ):
        """Oracle: the library's tokenizer, its alignment of words, and its model on each sentence alone, unpadded."""
        output = make_transformer(family, pooling=pooling)(pieces_of(family, SENTENCES))
        assert output.mask.tolist() == [
            [column < len(words) for column in range(output.mask.size(1))] for words in SENTENCES
        ]
        for row, words in enumerate(SENTENCES):
            if words:
                expected = reference_layers(checkpoint(family), words, pooling)
                assert len(output.layers) == len(expected) == 3
                for layer, of_library in zip(output.layers, expected, strict=True):
                    torch.testing.assert_close(layer[row, : len(words)], of_library, rtol=1e-4, atol=1e-5)
        assert not any(layer[~output.mask].any() for layer in output.layers)

    def test_a_sentence_has_the_same_layers_in_any_batch(self, make_transformer, pieces_of, family):
        """Oracle: the sentence alone; in a batch with others, computed in one group and in several."""
        transformer = make_transformer(family)
        alone = [transformer(pieces_of(family, [words])) for words in SENTENCES if words]
        for n_pieces in (16384, 20):
            output = make_transformer(family, max_pieces_per_batch=n_pieces)(pieces_of(family, SENTENCES))
            rows = [row for row, words in enumerate(SENTENCES) if words]
            for row, expected in zip(rows, alone, strict=True):
                for layer, of_one in zip(output.layers, expected.layers, strict=True):
                    torch.testing.assert_close(layer[row, : of_one.size(1)], of_one[0], rtol=1e-4, atol=1e-5)

    def test_a_long_sentence_is_read_in_windows(self, make_transformer, family):
        """
        Oracle: the network on each window of words of one piece; a word comes from the window in which it is farther
        from an edge.
        """
        long, alone = make_transformer(family, max_pieces=12, overlap=4), make_transformer(family)
        size = 12 - len(long.special)
        # Each word is one piece, so that windows are sentences of their own.
        words = torch.arange(20).remainder(7).add(12).reshape(1, 20, 1)
        output = long(words)
        starts = [*range(0, 20 - size, size - 4), 20 - size]
        expected = {start: alone(words[:, start : start + size]).layers for start in starts}

        def margin(start: int, position: int) -> int:
            """The distance to an edge inside of the sentence; the begin and the end of the sentence are none."""
            left = 99 if start == 0 else position - start
            return min(left, 99 if start + size == 20 else start + size - 1 - position)

        for position in range(20):
            # Of two that are as good, the later one.
            of_position = [start for start in reversed(starts) if start <= position < start + size]
            start = max(of_position, key=lambda start: margin(start, position))
            for layer, of_window in zip(output.layers, expected[start], strict=True):
                torch.testing.assert_close(layer[0, position], of_window[0, position - start], rtol=1e-4, atol=1e-5)

    def test_more_pieces_than_positions_are_no_error(self, make_transformer, pieces_of, family):
        """Oracle: finite vectors for each of 700 words, of which none of these models reads more than 512 at once."""
        output = make_transformer(family)(pieces_of(family, [["a", "b"] * 350]))
        assert output.mask.sum() == 700
        assert all(layer.isfinite().all() and layer[0].abs().sum(-1).min() > 0 for layer in output.layers)

    def test_a_batch_without_words_has_no_vectors(self, make_transformer, family):
        """Oracle: shapes by hand."""
        for shape in ((2, 0, 0), (2, 3, 0), (0, 0, 0), (1, 3, 2)):
            output = make_transformer(family)(torch.zeros(shape, dtype=torch.long))
            assert output.mask.shape == shape[:2]
            assert not output.mask.any()
            assert all(layer.shape == (*shape[:2], 16) and not layer.any() for layer in output.layers)


class TestTransformer:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"pooling": "last"}, "pooling must be 'first' or 'mean', but is 'last'"),
            ({"max_pieces": 41}, "max_pieces must be at most 40, the positions of the model, but is 41"),
            ({"max_pieces": 0}, "must leave room between the 2 special pieces of the model, but is 0"),
            ({"max_pieces_per_batch": 0}, "max_pieces_per_batch must be at least 1, but is 0"),
            ({"max_pieces": 2}, "must leave room between the 2 special pieces of the model, but is 2"),
            ({"max_pieces": 12, "overlap": 10}, "overlap must be from 0 to 9, but is 10"),
            ({"overlap": -1}, "overlap must be from 0 to 37, but is -1"),
        ],
    )
    def test_a_value_out_of_range_is_an_error(self, make_transformer, options, message):
        """Oracle: the message says rule and value."""
        with pytest.raises(ValueError, match=message):
            make_transformer("bert", **options)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_piece_that_the_network_lacks_is_an_error(self, make_transformer, family):
        """Oracle: the message has the number; the last piece that there is has a vector."""
        transformer = make_transformer(family)
        n_pieces = transformer.network.get_input_embeddings().num_embeddings
        assert transformer(torch.tensor([[[n_pieces]]])).layers[0].any()
        with pytest.raises(ValueError, match=f"has {n_pieces}, and there is one with the number {n_pieces}: give the"):
            transformer(torch.tensor([[[1, n_pieces + 1]]]))

    def test_the_positions_of_roberta_begin_after_that_of_its_padding(self, make_transformer):
        """Oracle: its table of 42, of which two have no piece."""
        make_transformer("roberta", max_pieces=40)
        with pytest.raises(ValueError, match="at most 40"):
            make_transformer("roberta", max_pieces=41)

    @pytest.mark.parametrize(
        "kind", ["ConvBert", "DistilBert", "FNet", "LayoutLM", "MobileBert", "Nystromformer", "SqueezeBert", "Yoso"]
    )
    def test_a_network_may_read_padding_or_lack_inputs(self, checkpoint, pieces_of, kind):
        """
        Oracle: each sentence alone. ConvBERT's convolutions and MobileBERT's embeddings read the padding, FNet has no
        mask, and DistilBERT no types, while BERT's tokenizer gives them. LayoutLM and SqueezeBERT always call their
        pooler.
        """
        special = read_pieces(str(checkpoint("bert")))[1]
        assert special.types is not None
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
        if kind == "DistilBert":
            sizes = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}
        elif kind in ("MobileBert", "SqueezeBert"):
            sizes["embedding_size"] = 16
        of_kind = getattr(transformers, f"{kind}Config")(vocab_size=200, max_position_embeddings=40, **sizes)
        config = json.loads(of_kind.to_json_string())
        torch.manual_seed(0)
        network = make_network(config)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(10 if parameter.dim() > 1 else 1)
            # Random weights have none for padding.
            network.get_input_embeddings().weight[0] = 1.0
        transformer = Transformer(network, config, special).eval()
        with torch.no_grad():
            together = transformer(pieces_of("bert", SENTENCES))
            for row, words in enumerate(SENTENCES):
                if words:
                    alone = transformer(pieces_of("bert", [words]))
                    for layer, expected in zip(together.layers, alone.layers, strict=True):
                        torch.testing.assert_close(layer[row, : len(words)], expected[0], rtol=1e-4, atol=1e-5)

    def test_bigbird_reads_a_sentence_in_one_way(self, checkpoint):
        """Oracle: a long sentence before and after a short one, after which the library has another attention."""
        special = read_pieces(str(checkpoint("bert")))[1]
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
        of_kind = transformers.BigBirdConfig(
            vocab_size=200, max_position_embeddings=120, block_size=4, num_random_blocks=1, **sizes
        )
        config = json.loads(of_kind.to_json_string())
        torch.manual_seed(0)
        transformer = Transformer(make_network(config), config, special).eval()
        long, short = (torch.arange(n).remainder(9).add(12).reshape(1, n, 1) for n in (99, 2))
        with torch.no_grad():
            before, _, after = (transformer(words).layers[-1] for words in (long, short, long))
        assert before.any() and torch.equal(before, after)

    @pytest.mark.parametrize(
        "config",
        [
            {"model_type": "canine", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
            {"model_type": "pegasus_x", "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 20},
        ],
        ids=lambda config: config["model_type"],
    )
    def test_a_network_that_cannot_read_any_sentence_is_an_error(self, config):
        """Oracle: networks of letters and of parts of a fixed length. The message has the type, and what is drawn later
        is as without the network's test."""
        network = make_network(config).train()
        torch.manual_seed(0)
        expected = torch.rand(1)
        torch.manual_seed(0)
        with pytest.raises(
            ValueError, match=f"one of type '{config['model_type']}' does not: .*Take another checkpoint"
        ):
            Transformer(network, config, SpecialPieces((1,), (2,)))
        assert network.training and torch.rand(1) == expected

    def test_gradients_reach_the_network(self, make_transformer, pieces_of):
        """Oracle: with each pooling, a gradient that is not zero for the weights of all layers."""
        for pooling in ("first", "mean"):
            transformer = make_transformer("bert", pooling=pooling).requires_grad_(True)
            output = transformer(pieces_of("bert", SENTENCES))
            output.layers[-1].square().sum().backward()
            for name, parameter in transformer.named_parameters():
                # A constant that is added to all scores of an attention changes none.
                if "key.bias" not in name:
                    assert parameter.grad.abs().max() > 0, name
