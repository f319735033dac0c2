"""Tests of `Predictor.get_gradients` for all tasks."""

import pytest
import torch
from allennlp.predictors import Predictor

from elmo_tasks.data.fields import without_gold
from tests.task_models import PLACES, TASKS


class TestGetGradients:
    @pytest.mark.parametrize("task", TASKS)
    def test_words_have_gradients_of_the_loss(self, make_model, task):
        """Oracle: the loss of the model, and not only zeros; without labels it is an error, and nothing has changed."""
        made = make_model(task, PLACES["none"])
        predictor = Predictor.by_name(made.model.default_predictor)(made.model, made.reader)
        required = {name: weight.requires_grad for name, weight in made.model.named_parameters()}
        gradients, outputs = predictor.get_gradients(made.instances[:2])
        loss = made.model(**made.tensors(made.instances[:2]))["loss"]
        torch.testing.assert_close(outputs["loss"], loss)
        assert gradients["grad_input_1"].ndim == 3 and gradients["grad_input_1"].any()
        if task not in ("squad", "coref"):  # Their gold is not labels.
            with pytest.raises(ValueError, match="instances must have labels"):
                predictor.get_gradients([without_gold(made.instances[0])])
        assert required == {name: weight.requires_grad for name, weight in made.model.named_parameters()}
        assert "loss" not in made.model.make_output_human_readable(made.model(**made.tensors(made.instances[:2])))
