from itertools import pairwise, product

import pytest
import torch
from allennlp.modules import ConditionalRandomField

from elmo_tasks.distillation.soft_labels import check_model, soft_labels, tag_marginals
from tests.task_models import TASKS


@pytest.fixture
def crf():
    torch.manual_seed(0)
    made = ConditionalRandomField(3)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=2.0)
    return made.requires_grad_(False)


LOGITS = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(1)) * 3
LENGTHS = [4, 2, 1]
MASK = torch.arange(4) < torch.tensor(LENGTHS).unsqueeze(1)


def by_hand(crf, logits, length, temperature):
    """The marginals of a sentence, from all sequences of its tags."""
    marginals = torch.zeros(length, 3, dtype=torch.float64)
    total = 0.0
    for tags in product(range(3), repeat=length):
        score = crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
        score = score + sum(logits[step, tag] for step, tag in enumerate(tags))
        score = score + sum(crf.transitions[one, other] for one, other in pairwise(tags))
        weight = (score.double() / temperature).exp()
        total += weight
        for step, tag in enumerate(tags):
            marginals[step, tag] += weight
    return marginals / total


class TestTagMarginals:
    @pytest.mark.parametrize("temperature", [1.0, 2.5])
    def test_they_are_the_shares_of_the_sequences(self, crf, temperature):
        """Oracle: all sequences of tags, one after another; nothing where there is no word."""
        found = tag_marginals(crf, LOGITS, MASK, temperature)
        for row, length in enumerate(LENGTHS):
            expected = by_hand(crf, LOGITS[row], length, temperature)
            torch.testing.assert_close(found[row, :length].double(), expected, rtol=1e-4, atol=1e-5)
            assert not found[row, length:].any()
        assert not found.requires_grad

    def test_they_are_the_same_without_gradients(self, crf):
        """Oracle: those with gradients."""
        with torch.no_grad():
            found = tag_marginals(crf, LOGITS, MASK)
        torch.testing.assert_close(found, tag_marginals(crf, LOGITS, MASK))

    def test_transitions_may_be_trained_alone(self, crf):
        """Oracle: the gradient with scores that have one too."""
        gradients = []
        crf.requires_grad_()
        for is_trained in (True, False):
            crf.zero_grad()
            tag_marginals(crf, LOGITS.clone().requires_grad_(is_trained), MASK)[..., 0].sum().backward()
            gradients.append(crf.transitions.grad.clone())
        assert gradients[0].any()
        torch.testing.assert_close(*gradients)

    def test_their_gradients_are_those_of_the_formula(self, crf):
        """Oracle: differences, by torch; of the logits and of the transitions."""
        crf.double()
        logits = LOGITS[:2, :3].double().requires_grad_()
        transitions = crf.transitions.clone().requires_grad_()

        def marginals(logits, transitions):
            # In place of the parameter.
            del crf.transitions
            crf.transitions = transitions
            return tag_marginals(crf, logits, MASK[:2, :3])

        assert torch.autograd.gradcheck(marginals, (logits, transitions))


class TestSoftLabels:
    def test_of_a_model_of_texts_they_are_a_softmax(self, make_model):
        """Oracle: the logits of the model, and torch's softmax."""
        made = make_model("sst", [])
        batch = made.tensors(made.instances[:3])
        batch.pop("label")
        found = soft_labels(made.model, batch, 2.0)
        torch.testing.assert_close(found.logits, made.model(**batch)["logits"])
        torch.testing.assert_close(found.probabilities, (found.logits / 2).softmax(-1))
        assert found.ends.tolist() == [1, 2, 3]
        assert not found.is_tagger

    def test_of_a_tagger_they_are_those_of_the_words(self, make_model):
        """Oracle: lengths by hand; of each word the probabilities add up to 1."""
        made = make_model("ner", [])
        batch = made.batch((["One", "two", "three"],), (["four"],))
        found = soft_labels(made.model, batch, 1.0)
        assert found.ends.tolist() == [3, 4]
        assert found.is_tagger
        assert found.logits.shape == found.probabilities.shape == (4, made.model.vocab.get_vocab_size("labels"))
        torch.testing.assert_close(found.probabilities.sum(-1), torch.ones(4))


class TestCheckModel:
    @pytest.mark.parametrize("task", TASKS)
    def test_other_tasks_are_an_error(self, make_model, task):
        """Oracle: the list by hand."""
        model = make_model(task, []).model
        if task in ("ner", "sst", "snli"):
            check_model(model)
        else:
            with pytest.raises(ValueError, match=f"but one is a {type(model).__name__}"):
                check_model(model)
