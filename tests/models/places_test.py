"""What ELMo at its places must do in the models of all tasks."""

import pytest
import torch

from elmo_tasks import data, models
from tests.task_models import BOTH, PLACES, TASKS, TaskModel

CLASSES = {
    "coref": (models.CorefResolver, data.CorefReader),
    "ner": (models.NerTagger, data.NerReader),
    "snli": (models.Esim, data.SnliReader),
    "squad": (models.SquadModel, data.SquadReader),
    "srl": (models.SemanticRoleLabeler, data.SrlReader),
    "sst": (models.BiattentiveClassifier, data.SstReader),
}
EMBEDDERS = {"input": "text_field_embedder", "output": "output_embedder"}
GLOVE = "text_field_embedder.token_embedder_tokens.weight"
# Beside the biLM.
FROZEN = {
    "coref": {GLOVE},
    "ner": {"crf._constraint_mask"},
    "snli": {GLOVE},
    "squad": {GLOVE},
    "srl": set(),
    "sst": {GLOVE},
}
# A softmax does not see what is added to all its inputs: these have gradients, but they are zero.
UNSEEN = {"squad": {"attention.similarity._bias", "self_attention.similarity._bias"}}
# Sentences in three instances: all of three documents, two of a pair, a question and its passage.
N_SENTENCES = {"coref": 18, "ner": 3, "snli": 6, "squad": 6, "srl": 3, "sst": 3}


def loss_of(made: TaskModel) -> torch.Tensor:
    return made.model(**made.tensors(made.instances))["loss"]


@pytest.mark.parametrize("task", TASKS)
class TestPlaces:
    def test_model_and_reader_are_those_of_the_task(self, make_model, task):
        """Oracle: the classes by hand."""
        made = make_model(task, [])
        assert (type(made.model), type(made.reader)) == CLASSES[task]

    @pytest.mark.parametrize("place", PLACES)
    def test_elmo_is_where_the_config_wants_it(self, make_model, task, place):
        """Oracle: the parts of the model that have ELMo, by hand; the input is before the output."""
        made = make_model(task, PLACES[place])
        found = [made.model.get_submodule(f"{EMBEDDERS[name]}.token_embedder_elmo") for name in PLACES[place]]
        assert made.elmo_embedders() == found

    @pytest.mark.parametrize("place", PLACES)
    def test_everything_but_what_is_frozen_is_trained(self, make_model, task, place):
        """Oracle: the names of the parameters with a gradient that is not zero."""
        made = make_model(task, PLACES[place])
        loss_of(made).backward()
        for name, parameter in made.model.named_parameters():
            if ".bilm." in name or name in FROZEN[task]:
                assert parameter.grad is None, name
            elif name not in UNSEEN.get(task, ()):
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
            assert passes == [N_SENTENCES[task]] * number * len(bilms)

    def test_the_two_places_have_mixes_of_their_own(self, make_model, task):
        """Oracle: by hand: other modules, and their weights have other gradients."""
        made = make_model(task, BOTH)
        loss_of(made).backward()
        below, above = (embedder.mix for embedder in made.elmo_embedders())
        assert below.gamma is not above.gamma
        assert below.layer_weights is not above.layer_weights
        assert not torch.equal(below.layer_weights.grad, above.layer_weights.grad)

    @pytest.mark.parametrize("place", ["input", "output", "both"])
    def test_elmo_makes_a_difference(self, make_model, task, place):
        """Oracle: another loss with gamma = 0 at any place; without ELMo there is nothing to turn off."""
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
