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


def indexer_of(folder, max_length=40):
    config = {
        "type": "elmo_transformer",
        "model_name": str(folder),
        "max_length": max_length,
        "tokenizer_kwargs": tokenizer_kwargs(folder),
    }
    return TokenIndexer.from_params(Params(config))


def batch_of(folder, sentences=SENTENCES, max_length=40):
    indexer = indexer_of(folder, max_length)
    fields = [TextField([Token(word) for word in words], {"elmo": indexer}) for words in sentences]
    batch = Batch([Instance({"tokens": field}) for field in fields])
    batch.index_instances(Vocabulary())
    return batch.as_tensor_dict()["tokens"]["elmo"]


@pytest.fixture
def bert(checkpoint):
    return checkpoint("bert")


class TestPretrainedTransformer:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_the_layers_of_words_match_the_library(self, checkpoint, family):
        folder = checkpoint(family)
        for pooling in ("avg", "first"):
            output = PretrainedTransformer(folder, pooling=pooling).eval()(**batch_of(folder))
            assert output.mask.sum(1).tolist() == [len(words) for words in SENTENCES]
            assert len(output.layers) == 3
            for row, words in enumerate(SENTENCES):
                expected = reference_layers(folder, words, pooling)
                for layer, of_library in zip(output.layers, expected, strict=True):
                    torch.testing.assert_close(
                        layer[row, : len(words)], of_library, rtol=1e-4, atol=1e-5
                    )
            assert not any(layer[~output.mask].any() for layer in output.layers)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_long_sentence_is_read_in_segments(self, checkpoint, family):
        folder = checkpoint(family)
        words = ["a", "b", "b"] * 20
        special = {"gpt": 0, "t5": 1}.get(family, 2)
        for max_length in (17, 20):
            batch = batch_of(folder, [words, *SENTENCES], max_length=max_length)
            output = PretrainedTransformer(folder).eval()(**batch)
            assert output.mask.sum(1).tolist() == [60, 7, 1, 3]
            # Each of these words is one piece.
            size = max_length - special
            segments = [
                reference_layers(folder, words[start : start + size])
                for start in range(0, 60, size)
            ]
            for layer, *of_library in zip(output.layers, *segments, strict=True):
                torch.testing.assert_close(layer[0], torch.cat(of_library), rtol=1e-4, atol=1e-5)

    def test_a_word_in_two_segments_and_a_word_without_pieces(self, bert):
        # Each 5 of "bbbbb..." are a piece or more, so the long word does not fit into one segment.
        batch = batch_of(bert, [["a", "", "b" * 60, "a"]], max_length=20)
        assert batch["word_numbers"][0, 1].ne(0).any() and len(batch["input_ids"][0]) > 2
        layers = PretrainedTransformer(bert).eval()(**batch).layers
        assert not any(layer[0, 1].any() for layer in layers)
        first = PretrainedTransformer(bert, pooling="first").eval()(**batch).layers
        hidden = [torch.cat(list(rows)) for rows in self.hidden_states(bert, batch)]
        of_word = batch["word_numbers"][0].flatten() == 3
        for mean_layer, first_layer, pieces in zip(layers, first, hidden, strict=True):
            torch.testing.assert_close(mean_layer[0, 2], pieces[of_word].mean(0))
            torch.testing.assert_close(first_layer[0, 2], pieces[of_word][0])

    def hidden_states(self, folder, batch):
        from transformers import AutoModel

        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = {name: batch[name][0] for name in names}
        with torch.no_grad():
            return (
                AutoModel.from_pretrained(folder)
                .eval()(**inputs, output_hidden_states=True)
                .hidden_states
            )

    @pytest.mark.parametrize("family", FAMILIES)
    def test_frozen_weights_have_no_dropout_and_trained_ones_have_gradients(
        self, checkpoint, family
    ):
        folder = checkpoint(family)
        batch = batch_of(folder)
        frozen = PretrainedTransformer(folder)
        expected = frozen.eval()(**batch).layers[-1]
        in_training = frozen.train()(**copy.deepcopy(batch)).layers[-1]
        assert torch.equal(in_training, expected) and not in_training.requires_grad
        trained = PretrainedTransformer(folder, requires_grad=True).train()
        sum(layer.square().sum() for layer in trained(**batch).layers).backward()
        # XLNet's vector for masked words is not used, nor, with transformers 5, are the types of
        # its segments.
        lacking = {
            name.rpartition(".")[2]
            for name, weight in trained.named_parameters()
            if weight.grad is None
        }
        assert lacking <= {"mask_emb", "seg_embed", "r_s_bias"}

    def test_two_places_share_one_pass(self, bert):
        batch = batch_of(bert)
        for requires_grad in (False, True):
            transformer = ContextualModel.from_params(
                Params(
                    {"type": "transformer", "model_name": str(bert), "requires_grad": requires_grad}
                )
            ).train()
            passes = []
            transformer.transformer_model.register_forward_pre_hook(
                lambda *args, passes=passes: passes.append(args)
            )
            one, other = (TransformerTokenEmbedder(transformer) for _ in range(2))
            mixed = one(**batch)
            assert torch.equal(mixed, other(**batch))
            assert len(passes) == 1
            torch.testing.assert_close(mixed, torch.stack(transformer(**batch).layers).mean(0))

    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_later_run_reads_the_layers_of_the_cache(self, checkpoint, tmp_path, family):
        folder = checkpoint(family)
        # Two segments, and a sentence that is there twice.
        batch = batch_of(folder, [["a", "b", "b"] * 20, *SENTENCES, SENTENCES[0]])
        expected = PretrainedTransformer(folder)(**batch)
        for n_passes in (2, 0):
            frozen = PretrainedTransformer(folder, cache_folder=str(tmp_path))
            passes = []
            frozen.transformer_model.register_forward_pre_hook(
                lambda *args, passes=passes: passes.append(args)
            )
            one = frozen(**batch_of(folder, SENTENCES[:1]))
            output = frozen(**batch)
            assert len(passes) == n_passes
            assert torch.equal(output.mask, expected.mask)
            for layer, of_library in zip(output.layers, expected.layers, strict=True):
                torch.testing.assert_close(layer, of_library, rtol=1e-4, atol=1e-5)
            assert torch.equal(one.layers[-1][0], output.layers[-1][1, :7])

    def test_a_cache_is_of_one_transformer_and_its_settings(self, bert, tmp_path):
        cache = {"cache_folder": str(tmp_path)}
        batch = batch_of(bert)
        stored = PretrainedTransformer(bert, **cache)(**batch)
        first = PretrainedTransformer(bert, pooling="first", **cache)(**batch)
        assert torch.equal(
            first.layers[1], PretrainedTransformer(bert, pooling="first")(**batch).layers[1]
        )
        changed = PretrainedTransformer(bert, **cache)
        with torch.no_grad():
            next(changed.transformer_model.parameters()).add_(1)
        assert not torch.equal(changed(**batch).layers[1], stored.layers[1])
        trained = PretrainedTransformer(bert, requires_grad=True, **cache)
        assert trained(**batch).layers[1].requires_grad

    def test_layers_with_dropout_are_not_stored(self, bert, tmp_path):
        cache = {"cache_folder": str(tmp_path)}
        batch = batch_of(bert)
        # As a trainer's `no_grad` freezes it: with dropout.
        frozen = PretrainedTransformer(bert, requires_grad=True, **cache).requires_grad_(False)
        dropped_out = frozen.train()(**batch).layers[-1]
        later = PretrainedTransformer(bert, **cache)(**batch).layers[-1]
        assert not torch.equal(later, dropped_out)
        assert torch.equal(later, PretrainedTransformer(bert)(**batch).layers[-1])

    def test_a_checkpoint_that_lacks_weights_is_an_error(self, bert, tmp_path):
        from safetensors.torch import load_file, save_file

        for file in bert.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        weights = load_file(bert / "model.safetensors")
        name = next(name for name in weights if "layer.1" in name)
        others = {key: value for key, value in weights.items() if key != name}
        save_file(others, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(ConfigurationError, match=r"encoder\.layer\.1"):
            PretrainedTransformer(str(tmp_path))


@pytest.mark.parametrize("task", TASKS)
class TestTransformersInEveryModel:
    def test_its_mixes_are_trained_at_both_places(self, environment, tmp_path, checkpoint, task):
        config = tmp_path / "variant.jsonnet"
        library = TRAINING_CONFIGS / "lib" / "transformer.libsonnet"
        made = f"(import '{library}')('{checkpoint('bert')}', max_length=40)"
        template = TRAINING_CONFIGS / "lib" / f"{task}.libsonnet"
        config.write_text(variant_config(template, BOTH, elmo=f"{{ transformer: {made} }}"))
        small = model_of(task, config)
        model, instances = small.model, small.instances[: 1 if task == "coref" else 2]
        batch = small.tensors(instances)
        before = copy.deepcopy(model.state_dict())
        model.train()
        model(**batch)["loss"].backward()
        torch.optim.Adam(
            [weight for weight in model.parameters() if weight.requires_grad], lr=0.01
        ).step()
        after = model.eval().state_dict()
        changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
        assert not any(".transformer_model." in name for name in changed)
        for place in ("text_field_embedder", "output_embedder"):
            assert f"{place}.token_embedder_elmo.mix.layer_weights" in changed
        assert model.make_output_human_readable(model(**small.tensors(instances)))
