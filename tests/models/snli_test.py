import numpy as np
import pytest
import torch
from allennlp.modules import FeedForward
from allennlp.modules.matrix_attention import DotProductMatrixAttention
from allennlp.nn import Activation

from tests.models.elmo_model_test import (
    ROWS,
    copy_weights,
    encoded_by,
    fill_biases,
    zeros_of_inputs,
)
from tests.task_models import BOTH, EACH_PLACE, PLACES, TaskModel

PAIRS = ROWS["snli"]


def esim(classifier: TaskModel, pair: tuple[str, ...]) -> torch.Tensor:
    """The logits of one pair without padding, by the formulas of Chen et al. (2017)."""
    model, tensors = classifier.model, classifier.batch(pair)
    encoded = []
    for name in ("premise", "hypothesis"):
        hidden = encoded_by(model.encoder, model.text_field_embedder(tensors[name]))
        if model.output_embedder is not None:
            hidden = torch.cat([hidden, model.output_embedder(tensors[name])[0]], -1)
        encoded.append(hidden)
    a, b = encoded
    similarity = a @ b.T
    pooled = []
    for own, attended in ((a, similarity.softmax(1) @ b), (b, similarity.T.softmax(1) @ a)):
        enhanced = torch.cat([own, attended, own - attended, own * attended], -1)
        projected = model.projection_feedforward(enhanced)
        inferred = encoded_by(model.inference_encoder, projected.unsqueeze(0))
        pooled += [inferred.mean(0), inferred.max(0).values]
    return model.label_projection(model.output_feedforward(torch.cat(pooled)))


class TestEsim:
    @pytest.mark.parametrize("place", EACH_PLACE)
    def test_it_computes_its_formulas(self, make_model, place):
        classifier = make_model("snli", PLACES[place])
        classifier.enlarge()
        assert classifier.model.encoder.get_input_dim() == 100 + 16 * ("input" in PLACES[place])
        together = classifier.model(**classifier.batch(*PAIRS))["logits"]
        for logits, pair in zip(together, PAIRS, strict=True):
            torch.testing.assert_close(logits, esim(classifier, pair), rtol=0, atol=1e-5)

    @pytest.mark.parametrize("place", ["none", "input"])
    def test_it_is_the_esim_of_allennlp(self, make_model, place):
        """AllenNLP's model cannot take ELMo at the output."""
        from allennlp_models.pair_classification.models.esim import ESIM

        classifier = make_model("snli", PLACES[place])
        classifier.enlarge()
        model = classifier.model
        output_logit = FeedForward(6, 1, 3, Activation.by_name("linear")())
        copy_weights([model.label_projection], output_logit)
        theirs = ESIM(
            model.vocab,
            model.text_field_embedder,
            model.encoder,
            DotProductMatrixAttention(),
            model.projection_feedforward,
            model.inference_encoder,
            model.output_feedforward,
            output_logit,
        ).eval()
        tensors = classifier.tensors(classifier.instances)
        output, expected = model(**tensors), theirs(**tensors)
        torch.testing.assert_close(output["logits"], expected["label_logits"], rtol=0, atol=1e-5)
        torch.testing.assert_close(output["loss"], expected["loss"], rtol=0, atol=1e-5)

    def test_the_attention_of_a_word_sums_to_one(self, make_model):
        classifier = make_model("snli", BOTH)
        output = classifier.model(**classifier.batch(*PAIRS))
        readable = classifier.model.make_output_human_readable(output)
        lengths = [(4, 5), (1, 12), (17, 1), (1, 1)]
        for (n_premise, n_hypothesis), weights in zip(lengths, readable["attention"], strict=True):
            premise = np.array(weights["premise"])
            hypothesis = np.array(weights["hypothesis"])
            assert premise.shape == (n_premise, n_hypothesis)
            assert hypothesis.shape == (n_hypothesis, n_premise)
            np.testing.assert_allclose(premise.sum(1), 1.0, atol=1e-5)
            np.testing.assert_allclose(hypothesis.sum(1), 1.0, atol=1e-5)

    def test_dropout_is_where_the_paper_has_it(self, make_model):
        """
        Section A.3 of the paper: dropout of 0.5 on the inputs of both LSTMs and of the last two
        layers.
        """
        for elmo_at, after_attention in ((BOTH, 0.5), ([], 0.0)):
            classifier = make_model("snli", elmo_at, hidden=40)
            model = classifier.model.train()
            inputs = zeros_of_inputs(
                model,
                "encoder",
                "projection_feedforward",
                "inference_encoder",
                "output_feedforward",
                "label_projection",
            )
            # Only dropout gives zeros.
            fill_biases(5.0, model.projection_feedforward, model.output_feedforward)
            sentence = "Two dogs run along the long beach"
            model(**classifier.batch(*[(sentence, sentence)] * 16))
            for name, dropped in inputs.items():
                rate = after_attention if name == "projection_feedforward" else 0.5
                assert dropped.float().mean().item() == pytest.approx(rate, abs=0.06), name
            for name in ("encoder", "inference_encoder"):
                assert torch.equal(inputs[name], inputs[name][:, :1].expand_as(inputs[name]))
                assert not torch.equal(inputs[name][0], inputs[name][4])
            if after_attention:
                assert not torch.equal(*inputs["projection_feedforward"][0, :2])

    def test_the_regularizer_has_the_weight_matrices_and_the_mixes(self, make_model):
        lstm = ("weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse")
        matrices = [
            f"{encoder}._module.{name}"
            for encoder in ("encoder", "inference_encoder")
            for name in lstm
        ]
        matrices += [
            f"{part}_feedforward._linear_layers.0.weight" for part in ("projection", "output")
        ]
        matrices += ["label_projection.weight"]
        mixes = [
            f"{place}.token_embedder_elmo.mix.layer_weights"
            for place in ("text_field_embedder", "output_embedder")
        ]
        model = make_model("snli", BOTH).model
        model.get_parameter(mixes[0]).data.fill_(1.0)
        model.get_parameter(mixes[1]).data.fill_(2.0)
        model.get_regularization_penalty().backward()
        found = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
        assert found == {*matrices, *mixes}
        for names, strength in ((matrices, 0.0001), (mixes, 0.001)):
            for name in names:
                parameter = model.get_parameter(name)
                torch.testing.assert_close(parameter.grad, 2 * strength * parameter.detach())
