import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model

from elmo_tasks.models.classification import labels_of, readable_labels, softmax_over_words
from tests.task_models import BOTH, PLACES

TASKS = ["snli", "sst"]
ROWS = {
    "snli": [
        ("A man sleeps.", "A person is asleep.", "entailment"),
        ("x", "Two dogs run along a very long beach in the rain .", "neutral"),
        ("Girls sing in front of the old church, and nobody listens to them at all.", "Silence", "contradiction"),
        ("One", "two", "neutral"),
    ],
    "sst": [
        (["A", "charming", "little", "film"], "3"),
        (["x"], "2"),
        (["The", "jokes", "are", "tired", ",", "and", "I", "hate", "it", "all", "."], "0"),
    ],
}


def zeroes_of_inputs(model: Model, *parts: str) -> dict[str, torch.Tensor]:
    """Into which a batch puts, for each part of the model, where its input is zero."""
    zeroes: dict[str, torch.Tensor] = {}
    for name in parts:
        model.get_submodule(name).register_forward_pre_hook(
            lambda module, args, name=name: zeroes.update({name: args[0] == 0})
        )
    return zeroes


class TestLabelsOf:
    def test_labels_are_in_the_order_of_their_numbers(self):
        """Oracle: by hand: the more frequent one is number 0."""
        assert labels_of(Vocabulary({"labels": {"b": 1, "a": 2, "c": 1}})) == ["a", "b", "c"]

    def test_none_are_an_error(self):
        """Oracle: the message: a training file is one for predictions."""
        with pytest.raises(ConfigurationError, match="must have the labels of the training data, but has none"):
            labels_of(Vocabulary())


class TestReadableLabels:
    def test_the_label_is_the_most_probable_one(self):
        """Oracle: probabilities by hand."""
        logits = torch.tensor([[0.0, np.log(3.0)], [np.log(4.0), 0.0]])
        readable = readable_labels(logits, ["no", "yes"])
        assert readable["label"] == ["yes", "no"]
        assert [list(row) for row in readable["probabilities"]] == [["no", "yes"]] * 2
        expected = [pytest.approx([0.25, 0.75]), pytest.approx([0.8, 0.2])]
        assert [list(row.values()) for row in readable["probabilities"]] == expected


class TestSoftmaxOverWords:
    @pytest.mark.parametrize("seed", range(20))
    def test_it_is_the_softmax_of_the_words_alone(self, seed):
        """Oracle: NumPy in float64 on the words of each text, with scores far above and far below zero."""
        generator = np.random.default_rng(seed)
        lengths = generator.integers(1, 7, size=3)
        scores = generator.normal(generator.choice([-300, -20, 0, 200]), 3, size=(3, 4, max(lengths)))
        mask = torch.arange(max(lengths)) < torch.as_tensor(lengths).unsqueeze(1)
        found = softmax_over_words(torch.tensor(scores, dtype=torch.float32), mask).numpy()
        for row, length in enumerate(lengths):
            shifted = np.exp(scores[row, :, :length] - scores[row, :, :length].max(-1, keepdims=True))
            expected = shifted / shifted.sum(-1, keepdims=True)
            np.testing.assert_allclose(found[row, :, :length], expected, rtol=1e-3, atol=1e-6)
            assert not found[row, :, length:].any()


@pytest.mark.parametrize("task", TASKS)
class TestModels:
    """Properties of both models."""

    @pytest.mark.parametrize("place", PLACES)
    def test_the_logits_do_not_depend_on_the_batch(self, make_model, task, place):
        """Oracle: each text alone, without padding; and the batch in reverse order."""
        classifier = make_model(task, PLACES[place])
        classifier.enlarge()
        rows = ROWS[task]
        together = classifier.model(**classifier.batch(*rows))["logits"]
        turned = classifier.model(**classifier.batch(*reversed(rows)))["logits"]
        torch.testing.assert_close(turned.flip(0), together, rtol=0, atol=1e-5)
        for row, logits in zip(rows, together, strict=True):
            alone = classifier.model(**classifier.batch(row))["logits"]
            torch.testing.assert_close(logits, alone[0], rtol=0, atol=1e-5)
        assert not torch.allclose(together[0], together[1], atol=1e-3)

    def test_the_loss_is_the_mean_cross_entropy(self, make_model, task):
        """Oracle: the formula in NumPy; without labels there is no loss."""
        classifier = make_model(task, [])
        classifier.enlarge()
        output = classifier.model(**classifier.batch(*ROWS[task]))
        logits = output["logits"].double().detach().numpy()
        labels = labels_of(classifier.model.vocab)
        gold = [labels.index(row[-1]) for row in ROWS[task]]
        likelihood = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        assert output["loss"].item() == pytest.approx(-likelihood[range(len(gold)), gold].mean(), rel=1e-5)
        without = classifier.model(**classifier.batch(*(row[:-1] for row in ROWS[task])))
        assert "loss" not in without
        torch.testing.assert_close(without["logits"], output["logits"])

    def test_the_metric_is_the_accuracy(self, make_model, task):
        """Oracle: by hand: one label is always predicted; the texts without labels do not count."""
        classifier = make_model(task, [])
        model, rows = classifier.model, ROWS[task]
        guess = rows[1][-1]
        model.label_projection.weight.data.zero_()
        model.label_projection.bias.data.zero_()[labels_of(model.vocab).index(guess)] = 1.0
        model(**classifier.batch(*rows))
        model(**classifier.batch(rows[0][:-1]))
        expected = sum(row[-1] == guess for row in rows) / len(rows)
        assert model.get_metrics(reset=True) == {"accuracy": pytest.approx(expected)}
        assert model.get_metrics() == {"accuracy": 0.0}

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_it_trains_with_automatic_mixed_precision(self, make_model, task, dtype):
        """Oracle: the loss in float32; finite gradients."""
        classifier = make_model(task, BOTH)
        tensors = classifier.batch(*ROWS[task])
        expected = classifier.model(**tensors)["loss"].item()
        with torch.autocast("cpu", dtype):
            loss = classifier.model(**tensors)["loss"]
        assert loss.item() == pytest.approx(expected, abs=0.02)
        loss.backward()
        gradients = [parameter.grad for parameter in classifier.model.parameters() if parameter.requires_grad]
        assert all(gradient.isfinite().all() for gradient in gradients)

    def test_a_wrong_width_is_an_error(self, make_model, task):
        """Oracle: the message names the parts and both widths."""
        parts = {
            "snli": [
                ("encoder", "input_size", "the embedded words", 100),
                ("projection_feedforward", "input_dim", "four times the encoded words", 48),
                ("inference_encoder", "input_size", "the projection", 6),
                ("output_feedforward", "input_dim", "the pooled pair", 48),
            ],
            "sst": [
                ("pre_encode_feedforward", "input_dim", "the embedded words", 100),
                ("encoder", "input_size", "the words before the encoder", 6),
                ("integrator", "input_size", "three times the encoded words", 36),
                ("output_feedforward", "input_dim", "the poolings", 48),
            ],
        }
        for part, key, name, width in parts[task]:
            overrides = f"{{ model+: {{ {part}+: {{ {key}: 7 }} }} }}"
            message = f"the width of {name} must match that of {part}'s input, but got {width} and 7"
            with pytest.raises(ConfigurationError, match=message):
                make_model(task, [], overrides)
