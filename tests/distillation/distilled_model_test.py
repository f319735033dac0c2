import numpy as np
import pytest
import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError

from elmo_tasks.distillation import DistilledModel
from elmo_tasks.distillation.soft_labels import soft_labels


@pytest.fixture
def make(make_model):
    """Makes a student of a task, whose teacher has its labels in another order, and a batch for it."""

    def make(task, **options):
        made = make_model(task, [])
        names = made.model.vocab.get_index_to_token_vocabulary("labels")
        labels = [names[index] for index in reversed(range(len(names)))]
        model = DistilledModel(made.model.vocab, Lazy(lambda **_: made.model), labels, **options).eval()
        labelled = made.tensors(made.instances[:2])
        rows = (["One", "two", "three"],), (["four"],)
        unlabelled = made.batch(*(rows if task != "snli" else (("One two", "three"), ("four", "five"))))
        size = (2, 3, len(labels)) if task in ("ner", "pos_tagger") else (2, len(labels))
        teacher = torch.rand(size, generator=torch.Generator().manual_seed(0)).softmax(-1)
        return model, labelled, {**unlabelled, "teacher": teacher.half()}

    return make


def expected_distance(model, unlabelled, temperature, loss):
    """By hand, in NumPy."""
    inputs = {name: value for name, value in unlabelled.items() if name != "teacher"}
    found = soft_labels(model.student, inputs, temperature)
    teacher = unlabelled["teacher"].float().numpy()[..., ::-1]
    # The words of two sentences, of three words and of one.
    teacher = np.concatenate([teacher[0], teacher[1][:1]]) if teacher.ndim == 3 else teacher
    if loss == "mse":
        return np.mean((found.logits.detach().numpy() - teacher) ** 2)
    entropies = -np.sum(teacher * np.log(found.probabilities.detach().numpy()), -1)
    # Only those of a CRF are added up over a sentence.
    return (entropies.sum() / 2 if hasattr(model.student, "crf") else entropies.mean()) * temperature**2


class TestDistilledModel:
    @pytest.mark.parametrize("task", ["ner", "pos_tagger", "sst", "snli"])
    @pytest.mark.parametrize(("loss", "temperature"), [("cross_entropy", 1.0), ("cross_entropy", 3.0), ("mse", 1.0)])
    def test_the_loss_is_between_that_of_the_gold_and_the_distance_to_the_teacher(self, make, task, loss, temperature):
        """Oracle: the student's own loss, and the formula in NumPy."""
        model, labelled, unlabelled = make(task, loss=loss, temperature=temperature, labelled_weight=0.25)
        own = model.student(**labelled)["loss"].item()
        distance = expected_distance(model, unlabelled, temperature, loss)
        model.get_metrics(reset=True)
        found = model(labelled=labelled, unlabelled=unlabelled)["loss"]
        assert found.item() == pytest.approx(0.25 * own + 0.75 * distance, rel=1e-4)
        assert model.get_metrics()["distillation_loss"] == pytest.approx(distance, rel=1e-4)

    @pytest.mark.parametrize("task", ["ner", "sst"])
    def test_the_student_learns_from_its_teacher_alone(self, make, task):
        """
        Oracle: with weight 0, after some steps the cross entropy is nearer to the entropy of the teacher, below which
        it cannot be; the transitions of a CRF have gradients.
        """
        model, labelled, unlabelled = make(task, labelled_weight=0.0)
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
        teacher = unlabelled["teacher"].float()
        teacher = torch.cat([teacher[0], teacher[1, :1]]) if task == "ner" else teacher
        least = -(teacher * teacher.log()).sum().item() / 2
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(labelled=labelled, unlabelled=unlabelled)["loss"]
            loss.backward()
            optimizer.step()
            losses.append(loss.item() - least)
        assert 0 < losses[-1] < 0.9 * losses[0]
        if task == "ner":
            assert model.student.crf.transitions.grad.abs().max() > 0

    def test_it_is_evaluated_as_the_student(self, make):
        """Oracle: the output, the loss and the metrics of the student."""
        model, labelled, unlabelled = make("sst")
        model(labelled=labelled, unlabelled=unlabelled)
        assert "distillation_loss" in model.get_metrics(reset=True)
        expected = model.student(**labelled)
        metrics = model.student.get_metrics(reset=True)
        found = model(**labelled)
        assert torch.equal(found["logits"], expected["logits"])
        assert found["loss"] == expected["loss"]
        assert model.get_metrics() == metrics
        assert model.default_predictor == "elmo_sentence"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"loss": "other"}, "must be 'cross_entropy' or 'mse', but is 'other'"),
            ({"temperature": 0.0}, "a temperature above 0 .* has 0.0 and 0.5"),
            ({"labelled_weight": 1.5}, "has 1.0 and 1.5"),
        ],
    )
    def test_a_value_out_of_range_is_an_error(self, make, options, message):
        """Oracle: the message."""
        with pytest.raises(ConfigurationError, match=message):
            make("sst", **options)

    def test_a_teacher_with_other_labels_is_an_error(self, make_model):
        """Oracle: the message names what each has alone."""
        made = make_model("snli", [])
        with pytest.raises(
            ConfigurationError, match="only the teacher has yes; only the student has entailment: give a teacher"
        ):
            DistilledModel(
                made.model.vocab,
                Lazy(lambda **_: made.model),
                ["yes", "neutral", "contradiction"],
            )

    def test_a_student_of_another_task_is_an_error(self, make_model):
        """Oracle: the message."""
        made = make_model("srl", [])
        labels = list(made.model.vocab.get_token_to_index_vocabulary("labels"))
        with pytest.raises(ConfigurationError, match="but one is a SemanticRoleLabeler"):
            DistilledModel(made.model.vocab, Lazy(lambda **_: made.model), labels)
