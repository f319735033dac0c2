import copy

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import TextField

from elmo_tasks.modules import ContextualModel, PretrainedTransformer, TransformerTokenEmbedder
from tests.modules.contextual.checkpoints import FAMILIES, reference_layers, tokenizer_kwargs
from tests.paths import TRAINING_CONFIGS
from tests.task_models import BOTH, TASKS, model_of, variant_config

SENTENCES = [["The", "cat", "sat", "on", "the", "mat", "."], ["Hello"], ["They", "visit", "Paris"]]


def indexer_of(folder, max_length=None):
    config = {
        "type": "pretrained_transformer_mismatched",
        "model_name": str(folder),
        "max_length": max_length,
        "tokenizer_kwargs": tokenizer_kwargs(folder),
    }
    return TokenIndexer.from_params(Params(config))


def batch_of(folder, sentences=SENTENCES, max_length=None):
    indexer = indexer_of(folder, max_length)
    fields = [TextField([Token(word) for word in words], {"elmo": indexer}) for words in sentences]
    batch = Batch([Instance({"tokens": field}) for field in fields])
    batch.index_instances(Vocabulary())
    return batch.as_tensor_dict()["tokens"]["elmo"]


def made(folder, **options):
    return PretrainedTransformer(str(folder), tokenizer_kwargs=tokenizer_kwargs(folder), **options)


@pytest.fixture
def bert(checkpoint):
    return checkpoint("bert")


class TestPretrainedTransformer:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_the_layers_of_words_match_the_library(self, checkpoint, family):
        folder = checkpoint(family)
        for pooling in ("avg", "first"):
            output = made(folder, pooling=pooling).eval()(**batch_of(folder))
            assert output.mask.sum(1).tolist() == [len(words) for words in SENTENCES]
            assert len(output.layers) == 3
            for row, words in enumerate(SENTENCES):
                expected = reference_layers(folder, words, pooling)
                for layer, of_library in zip(output.layers, expected, strict=True):
                    torch.testing.assert_close(layer[row, : len(words)], of_library, rtol=1e-4, atol=1e-5)
            assert not any(layer[~output.mask].any() for layer in output.layers)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_long_sentence_is_read_in_segments(self, checkpoint, family):
        folder = checkpoint(family)
        output = made(folder, max_length=20).eval()(**batch_of(folder, [["a", "b"] * 60], max_length=20))
        assert output.mask.sum() == 120
        assert all(layer.isfinite().all() and layer[0].abs().sum(-1).min() > 0 for layer in output.layers)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_frozen_weights_have_no_dropout_and_trained_ones_have_gradients(self, checkpoint, family):
        folder = checkpoint(family)
        batch = batch_of(folder)
        frozen = made(folder)
        expected = frozen.eval()(**batch).layers[-1]
        in_training = frozen.train()(**copy.deepcopy(batch)).layers[-1]
        assert torch.equal(in_training, expected) and not in_training.requires_grad
        trained = made(folder, requires_grad=True).train()
        sum(layer.square().sum() for layer in trained(**batch).layers).backward()
        # XLNet's vector for masked words is not used.
        lacking = {name.rpartition(".")[2] for name, weight in trained.named_parameters() if weight.grad is None}
        assert lacking <= {"mask_emb"}

    def test_two_places_share_one_pass(self, bert):
        batch = batch_of(bert)
        for requires_grad in (False, True):
            transformer = ContextualModel.from_params(
                Params({"type": "transformer", "model_name": str(bert), "requires_grad": requires_grad})
            ).train()
            passes = []
            transformer._embedder.register_forward_pre_hook(lambda *args, passes=passes: passes.append(args))
            one, other = (TransformerTokenEmbedder(transformer) for _ in range(2))
            mixed = one(**batch)
            assert torch.equal(mixed, other(**batch))
            assert len(passes) == 1
            torch.testing.assert_close(mixed, torch.stack(transformer(**batch).layers).mean(0))

    def test_a_checkpoint_that_lacks_weights_is_an_error(self, bert, tmp_path):
        from safetensors.torch import load_file, save_file

        for file in bert.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        weights = load_file(bert / "model.safetensors")
        name = next(name for name in weights if "layer.1" in name)
        save_file({key: value for key, value in weights.items() if key != name}, tmp_path / "model.safetensors")
        with pytest.raises(ConfigurationError, match=r"encoder\.layer\.1"):
            PretrainedTransformer(str(tmp_path))


@pytest.mark.parametrize("task", TASKS)
class TestTransformersInEveryModel:
    def test_its_mixes_are_trained_at_both_places(self, environment, tmp_path, checkpoint, task):
        config = tmp_path / "variant.jsonnet"
        made = f"(import '{TRAINING_CONFIGS}/lib/transformer.libsonnet')('{checkpoint('bert')}', max_length=40)"
        template = TRAINING_CONFIGS / "lib" / f"{task}.libsonnet"
        config.write_text(variant_config(template, BOTH, elmo=f"{{ transformer: {made} }}"))
        small = model_of(task, config)
        model, instances = small.model, small.instances[: 1 if task == "coref" else 2]
        batch = small.tensors(instances)
        before = copy.deepcopy(model.state_dict())
        model.train()
        model(**batch)["loss"].backward()
        torch.optim.Adam([weight for weight in model.parameters() if weight.requires_grad], lr=0.01).step()
        after = model.eval().state_dict()
        changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
        assert not any(".transformer_model." in name for name in changed)
        for place in ("text_field_embedder", "output_embedder"):
            assert f"{place}.token_embedder_elmo.mix.layer_weights" in changed
        assert model.make_output_human_readable(model(**small.tensors(instances)))
