"""Tests of the model of parts of speech."""

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Batch, DatasetReader, Vocabulary
from allennlp.models import Model

from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM


@pytest.fixture
def tagger(environment, training_configs):
    """The classifier of Table 6 on the tiny biLM's layer 1, with random weights; and four instances."""
    params = Params.from_file(training_configs / "pos_layer.jsonnet")
    instances = list(DatasetReader.from_params(params["dataset_reader"]).read(params["validation_data_path"]))[:4]
    vocab = Vocabulary.from_instances(instances)
    torch.manual_seed(0)
    return Model.from_params(vocab=vocab, params=params["model"]).eval(), instances


class TestPosClassifier:
    def test_it_is_a_linear_classifier_of_one_layer(self, tagger):
        """Oracle: `Elmo`'s layer 1 of each sentence by itself, times the weights in NumPy; the largest one."""
        model, instances = tagger
        outputs = model.forward_on_instances(instances)
        elmo = Elmo.from_pretrained(TINY_BILM)
        (weight, bias) = (parameter.detach().numpy() for parameter in model.tag_projection_layer.parameters())
        names = model.vocab.get_index_to_token_vocabulary("labels")
        for instance, output in zip(instances, outputs, strict=True):
            words = [token.text for token in instance["tokens"]]
            (vectors,) = elmo.embed([words], layers=1, progress=False)
            expected = [names[index] for index in (vectors @ weight.T + bias).argmax(-1)]
            assert output["words"] == words and output["tags"] == expected

    def test_a_prediction_has_words_and_as_many_tags(self, tagger):
        """Oracle: the keys by hand; the lengths of the sentences, which differ."""
        model, instances = tagger
        batch = Batch(instances)
        batch.index_instances(model.vocab)
        readable = model.make_output_human_readable(model(**batch.as_tensor_dict()))
        lengths = [len(instance["tokens"]) for instance in instances]
        assert set(readable) == {"words", "tags"} and len(set(lengths)) > 1
        assert [len(tags) for tags in readable["tags"]] == lengths

    def test_it_has_the_initializer_of_its_config(self, environment, training_configs):
        """Oracle: by hand; the weights of the frozen biLM must stay."""

        def made(regex):
            params = Params.from_file(training_configs / "pos_layer.jsonnet")
            constant = {"type": "constant", "val": 0.5}
            config = {**params["model"].as_dict(), "initializer": {"regexes": [[regex, constant]]}}
            return Model.from_params(vocab=Vocabulary({"labels": {"NN": 2}}), params=Params(config))

        assert (made("tag_projection").tag_projection_layer._module.weight == 0.5).all()
        with pytest.raises(ConfigurationError, match="must leave the frozen biLM's weights"):
            made(".*")

    def test_a_new_tag_in_an_archive_is_an_error(self, tagger):
        """Oracle: the message."""
        model, _ = tagger
        model.vocab.extend_from_vocab(Vocabulary({"labels": {"NEW": 2}}))
        with pytest.raises(ConfigurationError, match=r"but there are others too: NEW\."):
            model.extend_embedder_vocab()

    def test_a_vocabulary_without_tags_is_an_error(self, environment, training_configs):
        """Oracle: the message."""
        params = Params.from_file(training_configs / "pos_layer.jsonnet")
        with pytest.raises(ConfigurationError, match="must have the labels of the training data, but has none"):
            Model.from_params(vocab=Vocabulary(), params=params["model"])

    def test_the_loss_in_bfloat16_is_nearly_that_in_float32(self, tagger):
        """Oracle: the same model without autocast; finite gradients."""
        model, instances = tagger
        batch = Batch(instances)
        batch.index_instances(model.vocab)
        tensors = batch.as_tensor_dict()
        expected = model(**tensors)["loss"].item()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(**tensors)["loss"]
        loss.backward()
        assert loss.dtype == torch.float32 and loss.item() == pytest.approx(expected, rel=0.02)
        assert model.tag_projection_layer._module.weight.grad.isfinite().all()
