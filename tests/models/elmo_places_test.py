"""Tests of ELMo at the input and the output of the models of all tasks."""

import pytest
import torch

from tests.task_models import BOTH, PLACES, TASKS, TaskModel

EMBEDDERS = {"input": "text_field_embedder", "output": "output_embedder"}


def loss_of(made: TaskModel) -> torch.Tensor:
    return made.model(**made.tensors(made.instances))["loss"]


@pytest.mark.parametrize("task", TASKS)
class TestElmoInEveryModel:
    def test_model_and_reader_are_those_of_the_task(self, make_model, task):
        """Oracle: the table of tasks, by hand."""
        made = make_model(task, [])
        assert (type(made.model), type(made.reader)) == (TASKS[task].model, TASKS[task].reader)

    def test_the_metrics_are_known_before_a_score(self, make_model, task):
        """Oracle: those after a batch. A training asks for them, to compare its validation_metric with them."""
        made = make_model(task, [])
        before = made.model.get_metrics().keys()
        loss_of(made)
        assert before and before == made.model.get_metrics().keys()

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_a_model_can_be_cast(self, make_model, task, dtype):
        """Oracle: the loss in float32; a prediction of each instance has the same keys."""
        made = make_model(task, BOTH)
        expected, (in_float32, *_) = loss_of(made).item(), made.model.forward_on_instances(made.instances[:3])
        made.model.to(dtype)
        predictions = made.model.forward_on_instances(made.instances[:3])
        assert len(predictions) == 3 and all(found.keys() == in_float32.keys() for found in predictions)
        assert loss_of(made).item() == pytest.approx(expected, rel=0.05)

    @pytest.mark.parametrize("place", PLACES)
    def test_elmo_is_where_the_config_wants_it(self, make_model, task, place):
        """Oracle: the parts of the model that have ELMo, by hand; the input is before the output."""
        made = make_model(task, PLACES[place])
        found = [made.model.get_submodule(f"{EMBEDDERS[name]}.token_embedder_elmo") for name in PLACES[place]]
        assert made.elmo_embedders() == found

    @pytest.mark.parametrize("place", PLACES)
    def test_all_parameters_but_the_frozen_ones_are_trained(self, make_model, task, place):
        """Oracle: the table of tasks; all other parameters have a gradient that is not zero."""
        made = make_model(task, PLACES[place], TASKS[task].gradient_overrides)
        loss_of(made).backward()
        for name, parameter in made.model.named_parameters():
            if ".bilm." in name or name in TASKS[task].frozen:
                assert parameter.grad is None, name
            elif name not in TASKS[task].unseen:
                assert parameter.grad.abs().max() > 0, name

    @pytest.mark.parametrize("place", PLACES)
    def test_the_bilm_runs_once_a_batch_on_all_sentences(self, make_model, task, place):
        """Oracle: the number of runs, and the sentences in each; none without ELMo, and one biLM for two places."""
        made = make_model(task, PLACES[place])
        bilms = {embedder.bilm for embedder in made.elmo_embedders()}
        assert len(bilms) == min(1, len(PLACES[place]))
        passes: list[int] = []
        for bilm in bilms:
            bilm.bilm.register_forward_pre_hook(lambda module, args: passes.append(len(args[0])))
        for number, training in enumerate((True, True, False), start=1):
            made.model.train(training)(**made.tensors(made.instances[:3]))
            assert passes == [TASKS[task].n_sentences] * number * len(bilms)

    def test_the_two_places_have_mixes_of_their_own(self, make_model, task):
        """Oracle: by hand: different modules, with different gradients."""
        made = make_model(task, BOTH)
        loss_of(made).backward()
        below, above = (embedder.mix for embedder in made.elmo_embedders())
        assert below.gamma is not above.gamma
        assert below.layer_weights is not above.layer_weights
        assert not torch.equal(below.layer_weights.grad, above.layer_weights.grad)

    @pytest.mark.parametrize("place", ["input", "output", "both"])
    def test_elmo_makes_a_difference(self, make_model, task, place):
        """Oracle: a different loss with gamma = 0 at any place."""
        made = make_model(task, PLACES[place])
        made.enlarge()
        with torch.no_grad():
            before = loss_of(made)
            for embedder in made.elmo_embedders():
                gamma = embedder.mix.gamma.clone()
                embedder.mix.gamma.zero_()
                assert not torch.allclose(loss_of(made), before)
                embedder.mix.gamma.copy_(gamma)
            assert torch.equal(loss_of(made), before)
