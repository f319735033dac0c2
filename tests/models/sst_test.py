import pytest
import torch
from allennlp.modules import FeedForward
from allennlp.nn import Activation

from tests.models.elmo_model_test import (
    ROWS,
    copy_weights,
    encoded_by,
    fill_biases,
    zeros_of_inputs,
)
from tests.task_models import BOTH, EACH_PLACE, PLACES, TaskModel

TEXTS = ROWS["sst"]


def bcn(classifier: TaskModel, text: tuple[object, ...]) -> torch.Tensor:
    """
    The logits of one text without padding, by the formulas of McCann et al. (2017), with ReLU
    instead of maxout.
    """
    model, tensors = classifier.model, classifier.batch(text)
    words = model.text_field_embedder(tensors["tokens"])
    encoded = encoded_by(model.encoder, model.pre_encode_feedforward(words))
    if model.output_embedder is not None:
        encoded = torch.cat([encoded, model.output_embedder(tensors["tokens"])[0]], -1)
    attended = (encoded @ encoded.T).softmax(1) @ encoded
    mixed = torch.cat([encoded, encoded - attended, encoded * attended], -1)
    integrated = encoded_by(model.integrator, mixed.unsqueeze(0))
    weights = (integrated @ model.self_attention.weight[0] + model.self_attention.bias).softmax(0)
    hidden = torch.cat(
        [
            integrated.max(0).values,
            integrated.min(0).values,
            integrated.mean(0),
            weights @ integrated,
        ]
    )
    return model.label_projection(model.output_feedforward(hidden))


class TestBiattentiveClassifier:
    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_it_computes_its_formulas(self, make_model, place):
        classifier = make_model("sst", PLACES[place])
        classifier.enlarge()
        width = classifier.model.pre_encode_feedforward.get_input_dim()
        assert width == 100 + 16 * ("input" in PLACES[place])
        together = classifier.model(**classifier.batch(*TEXTS))["logits"]
        for logits, text in zip(together, TEXTS, strict=True):
            torch.testing.assert_close(logits, bcn(classifier, text), rtol=0, atol=1e-5)

    def test_it_is_the_bcn_of_allennlp(self, make_model):
        """AllenNLP's model does not take ELMo from an embedder."""
        from allennlp_models.classification import BiattentiveClassificationNetwork

        classifier = make_model("sst", [])
        classifier.enlarge()
        model = classifier.model
        activations = [Activation.by_name(name)() for name in ("relu", "relu", "linear")]
        output_layer = FeedForward(48, 3, [24, 12, 5], activations)
        copy_weights([model.output_feedforward, model.label_projection], output_layer)
        theirs = BiattentiveClassificationNetwork(
            model.vocab,
            model.text_field_embedder,
            0.5,
            model.pre_encode_feedforward,
            model.encoder,
            model.integrator,
            0.1,
            output_layer,
        ).eval()
        copy_weights(
            [model.self_attention], theirs.get_submodule("_self_attentive_pooling_projection")
        )
        tensors = classifier.tensors(classifier.instances)
        del tensors["metadata"]
        output, expected = model(**tensors), theirs(**tensors)
        torch.testing.assert_close(output["logits"], expected["logits"], rtol=0, atol=1e-5)
        torch.testing.assert_close(output["loss"], expected["loss"], rtol=0, atol=1e-5)

    def test_dropout_is_where_the_config_has_it(self, make_model):
        """The rates are from AllenNLP's BCN config, plus 0.5 for ELMo at the output."""
        classifier = make_model("sst", BOTH, hidden=40)
        model = classifier.model.train()
        inputs = zeros_of_inputs(
            model,
            "pre_encode_feedforward",
            "encoder",
            "integrator",
            "output_feedforward",
            "label_projection",
        )
        # Only dropout gives zeros.
        fill_biases(5.0, model.pre_encode_feedforward, model.output_feedforward)
        model(**classifier.batch(*[(["Two", "dogs", "run", "along", "the", "beach"],)] * 16))
        rates = {
            "pre_encode_feedforward": 0.5,
            "encoder": 0.25,
            "output_feedforward": 0.1,
            "label_projection": 0.3,
        }
        for name, rate in rates.items():
            assert inputs[name].float().mean().item() == pytest.approx(rate, abs=0.06), name
        # The encoder has 80 units, ELMo 16.
        assert not inputs["integrator"][..., :80].any()
        assert inputs["integrator"][..., 80:96].float().mean().item() == pytest.approx(
            0.5, abs=0.06
        )

    def test_the_regularizer_covers_only_the_mixes(self, make_model):
        model = make_model("sst", BOTH).model
        mixes = [
            f"{place}.token_embedder_elmo.mix.layer_weights"
            for place in ("text_field_embedder", "output_embedder")
        ]
        for number, name in enumerate(mixes, start=1):
            model.get_parameter(name).data.fill_(float(number))
        penalty = model.get_regularization_penalty()
        penalty.backward()
        assert {
            name for name, parameter in model.named_parameters() if parameter.grad is not None
        } == set(mixes)
        assert penalty.item() == pytest.approx(0.001 * (3 * 1 + 3 * 4))
        assert make_model("sst", []).model.get_regularization_penalty() is None
