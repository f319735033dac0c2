import copy
import pickle

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_tasks.data import TransformerTokenIndexer
from elmo_tasks.modules import ContextualModel, ElmoTokenEmbedder, PretrainedBilm, PretrainedTransformer
from elmo_tasks.transformer.self_contained import write_content
from tests.data.transformer_token_indexer_test import tensor_of
from tests.transformer.checkpoints import FAMILIES, reference_layers

SENTENCES = [["The", "cat", "sat", "."], ["Hello"], ["Encyclopædia", "😀", "cat"]]


@pytest.fixture
def name(checkpoint):
    return str(checkpoint("bert"))


@pytest.fixture
def batch(name):
    return tensor_of(TransformerTokenIndexer(name), SENTENCES)["elmo"]["pieces"]


def count_passes(transformer):
    seen = []
    transformer.transformer.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    return seen


class TestPretrainedTransformer:
    def test_it_is_made_from_a_config(self, name, batch, checkpoint):
        """Oracle: the library's layers; a config without a type is a biLM."""
        made = ContextualModel.from_params(Params({"type": "transformer", "model_name": name, "pooling": "first"}))
        assert isinstance(made, PretrainedTransformer)
        assert (made.num_layers, made.get_output_dim()) == (3, 16)
        expected = reference_layers(checkpoint("bert"), SENTENCES[0], "first")
        for layer, of_library in zip(made(batch).layers, expected, strict=True):
            torch.testing.assert_close(layer[0], of_library, rtol=1e-4, atol=1e-5)
        assert ContextualModel.resolve_class_name(ContextualModel.default_implementation)[0] is PretrainedBilm

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_frozen_one_is_frozen(self, checkpoint, family):
        """Oracle: in training the same layers twice and as in evaluation, without gradients; no weight gets one."""
        name = str(checkpoint(family))
        pieces = tensor_of(TransformerTokenIndexer(name), SENTENCES)["elmo"]["pieces"]
        frozen = PretrainedTransformer(name)
        before = {key: value.clone() for key, value in frozen.state_dict().items()}
        evaluated = frozen.eval()(pieces.clone())
        frozen.train()
        for _ in range(2):
            output = frozen(pieces.clone())
            assert not any(layer.requires_grad for layer in output.layers)
            assert all(torch.equal(*pair) for pair in zip(output.layers, evaluated.layers, strict=True))
        assert not any(parameter.requires_grad for parameter in frozen.parameters())
        assert all(torch.equal(before[key], value) for key, value in frozen.state_dict().items())

    def test_one_that_is_trained_has_one_pass_a_step_with_dropout(self, name, batch):
        """Oracle: the number of passes of two places; another dropout in the next step; gradients that are not zero."""
        trained = PretrainedTransformer(name, requires_grad=True).train()
        passes = count_passes(trained)
        first = trained(batch)
        assert trained(batch) is first
        sum(layer.square().sum() for layer in (*first.layers, *trained(batch).layers)).backward()
        assert len(passes) == 1
        assert all(p.grad.abs().max() > 0 for n, p in trained.named_parameters() if "key.bias" not in n)
        second = trained(batch)
        assert len(passes) == 2
        assert not torch.equal(first.layers[-1], second.layers[-1])
        trained.eval()
        with torch.no_grad():
            assert torch.equal(trained(batch).layers[-1], trained(batch.clone()).layers[-1])

    @pytest.mark.parametrize("family", FAMILIES)
    def test_all_that_is_trained_has_a_gradient(self, checkpoint, family):
        """Oracle: torch's training in several processes takes a weight without one for an error."""
        name = str(checkpoint(family))
        trained = PretrainedTransformer(name, requires_grad=True).train()
        pieces = tensor_of(TransformerTokenIndexer(name), SENTENCES)["elmo"]["pieces"]
        sum(layer.sum() for layer in trained(pieces).layers).backward()
        named = trained.named_parameters()
        assert [name for name, weight in named if (weight.grad is None) == weight.requires_grad] == []

    def test_random_weights_that_were_never_trained_are_an_error(self, name, batch):
        """Oracle: the message; none after a step."""
        config = {"bilm": {"type": "transformer", "model_name": name, "requires_grad": True}}
        write_content(config)
        content = {key: value for key, value in config["bilm"].items() if key != "pretrained_file"}
        made = [ContextualModel.from_params(Params(dict(content))) for _ in range(2)]
        with pytest.raises(ConfigurationError, match=r"never loaded.*'no_grad' in the trainer"):
            made[0].requires_grad_(False).train()(batch)
        made[1].train()(batch)
        made[1].requires_grad_(False)(batch)

    @pytest.mark.parametrize("family", ["albert", "electra", "bert"])
    def test_autocast_does_not_change_a_frozen_one(self, checkpoint, family, tmp_path):
        """Oracle: the layers without it, also from a cache; a trained one still gives float32."""
        name = str(checkpoint(family))
        pieces = tensor_of(TransformerTokenIndexer(name), SENTENCES)["elmo"]["pieces"]
        expected = PretrainedTransformer(name)(pieces).layers[-1]
        for folder in (None, str(tmp_path / "cache")):
            with torch.autocast("cpu", torch.bfloat16):
                assert torch.equal(PretrainedTransformer(name, cache_folder=folder)(pieces).layers[-1], expected)
                trained = PretrainedTransformer(name, requires_grad=True).eval()(pieces).layers[-1]
            assert trained.dtype is torch.float32
            assert trained.requires_grad

    def test_two_places_share_it(self, name, batch):
        """Oracle: the number of passes of two token embedders, and the mean of the layers."""
        transformer = PretrainedTransformer(name)
        passes = count_passes(transformer)
        one, other = (ElmoTokenEmbedder(transformer) for _ in range(2))
        mixed = one(batch)
        assert torch.equal(mixed, other(batch))
        assert len(passes) == 1
        torch.testing.assert_close(mixed, torch.stack(transformer(batch).layers).mean(0))

    def test_an_archive_needs_no_checkpoint(self, name, batch):
        """Oracle: the layers of the one from the checkpoint; before its weights are loaded it is an error."""
        config = {"bilm": {"type": "transformer", "model_name": name}}
        write_content(config)
        params = {key: value for key, value in config["bilm"].items() if key != "pretrained_file"}
        params["model_name"] = "/gone"
        again = ContextualModel.from_params(Params(params))
        with pytest.raises(ConfigurationError, match=r"never loaded.*'pretrained_file'.*'requires_grad'"):
            again(batch)
        expected = PretrainedTransformer(name)
        torch.nn.ModuleDict({"a": again}).load_state_dict(torch.nn.ModuleDict({"a": expected}).state_dict())
        assert torch.equal(again(batch).layers[-1], expected(batch).layers[-1])

    def test_it_is_copied_and_pickled(self, name, batch):
        """Oracle: the layers; then a change of the copy does not show in the original."""
        transformer = PretrainedTransformer(name)
        before = transformer(batch).layers[-1]
        for other in (copy.deepcopy(transformer), pickle.loads(pickle.dumps(transformer))):
            assert torch.equal(other(batch).layers[-1], before)
            with torch.no_grad():
                other.transformer.network.embeddings.word_embeddings.weight.mul_(0.5)
            assert not torch.equal(other(batch).layers[-1], before)
            assert torch.equal(transformer(batch).layers[-1], before)

    def test_a_cache_folder_makes_a_later_run_compute_nothing(self, name, batch, tmp_path, monkeypatch):
        """Oracle: the passes, and the layers without a cache; the folder may come from the environment."""
        expected = PretrainedTransformer(name)(batch)
        PretrainedTransformer(name, cache_folder=str(tmp_path / "cache"))(batch)
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
        later = PretrainedTransformer(name)
        passes = count_passes(later)
        assert all(torch.equal(*pair) for pair in zip(later(batch).layers, expected.layers, strict=True))
        assert not passes

    def test_a_training_between_is_seen_by_the_cache(self, name, batch, tmp_path):
        """Oracle: a copy without a cache, where the weights were changed without a trace, as fused optimizers do."""
        transformer = PretrainedTransformer(name, cache_folder=str(tmp_path / "cache"))
        before = transformer(batch.clone()).layers[-1]
        transformer.requires_grad_(True)
        transformer(batch.clone())
        transformer.transformer.network.embeddings.word_embeddings.weight.data.mul_(0.5)
        transformer.requires_grad_(False)
        alone = PretrainedTransformer(name)
        alone.load_state_dict(transformer.state_dict())
        found, expected = (each.eval()(batch.clone()).layers[-1] for each in (transformer, alone))
        assert torch.equal(found, expected) and not torch.equal(found, before)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "must have a 'model_name'"),
            ({"model_name": "/no/such/folder"}, "the transformer '/no/such/folder' must have config.json"),
            ({"config": {"model_type": "bert"}}, "special_pieces must have lists"),
            (
                {"config": {"model_type": "none"}, "special_pieces": {"before": [], "after": [], "types": None}},
                "model_type 'none'",
            ),
        ],
    )
    def test_one_that_cannot_be_made_is_an_error(self, options, message):
        """Oracle: the message, in one line."""
        with pytest.raises(ConfigurationError, match=message) as error:
            PretrainedTransformer(**options)
        assert "\n" not in str(error.value)
