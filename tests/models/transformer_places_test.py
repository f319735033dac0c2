"""Tests of each family of transformers at the input and the output of the models of all tasks."""

import copy
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, Instance, TokenIndexer, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.models import Model

from elmo_tasks.modules import ElmoTokenEmbedder
from elmo_tasks.transformer.self_contained import write_content
from tests.paths import TRAINING_CONFIGS
from tests.task_models import BOTH, TASKS, model_of, variant_config
from tests.transformer.checkpoints import FAMILIES

_TRANSFORMER = TRAINING_CONFIGS / "lib" / "transformer.libsonnet"
# In a config, where the folder of the checkpoint will be.
_NAME = "CHECKPOINT"


class OfTask(NamedTuple):
    """The variant of a task with a transformer at both places, and a few instances."""

    config: str
    vocab: Vocabulary
    instances: list[Instance]

    def params(self, folder: Path) -> dict[str, Any]:
        """The config with a checkpoint."""
        params: dict[str, Any] = json.loads(self.config.replace(_NAME, str(folder)))
        return params

    def model(self, params: dict[str, Any]) -> Model:
        # With other seeds, one in thirty, dropout leaves nothing of the few units of a small model.
        torch.manual_seed(1)
        return Model.from_params(vocab=self.vocab, params=Params(copy.deepcopy(params["model"]))).eval()

    def batch(self, params: dict[str, Any], reader: str) -> dict[str, Any]:
        """The instances with the words and pieces of a config."""
        indexers = {
            name: TokenIndexer.from_params(Params(copy.deepcopy(indexer)))
            for name, indexer in params[reader]["token_indexers"].items()
        }
        for field in (field for instance in self.instances for field in instance.fields.values()):
            for text in field if isinstance(field, ListField) else [field]:
                if isinstance(text, TextField):
                    text.token_indexers = indexers
        batch = Batch([Instance(instance.fields) for instance in self.instances])
        batch.index_instances(self.vocab)
        return batch.as_tensor_dict()


@pytest.fixture(scope="module")
def of_task(tmp_path_factory: pytest.TempPathFactory, checkpoint: Callable[[str], Path]) -> Callable[[str], OfTask]:
    """What is made once of each task: config and instances; all checkpoints have the same width."""
    made: dict[str, OfTask] = {}

    def make(task: str) -> OfTask:
        if task not in made:
            config = tmp_path_factory.mktemp("variant") / "variant.jsonnet"
            call = f"(import '{_TRANSFORMER}')('{checkpoint('bert')}')"
            config.write_text(variant_config(TRAINING_CONFIGS / "lib" / f"{task}.libsonnet", BOTH, contextual=call))
            of_bert = model_of(task, config)
            params = Params.from_file(config).as_dict(quiet=True)
            params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
            text = json.dumps(params).replace(str(checkpoint("bert")), _NAME)
            made[task] = OfTask(text, of_bert.model.vocab, of_bert.instances[: 1 if task == "coref" else 2])
        return made[task]

    return make


def step(model: Model, batch: dict[str, Any]) -> None:
    """One step of training."""
    model.train()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.01)
    model(**batch)["loss"].backward()
    optimizer.step()
    model.eval()


def network_of(model: Model) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items() if ".transformer.network." in name}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("task", TASKS)
class TestTransformersInEveryModel:
    def test_it_is_trained_saved_and_predicts(self, environment, of_task, checkpoint, task, family):
        """
        Oracle: after one step the transformer has the weights of its checkpoint, and the mixes of both places have
        others; a model of the archived config with the saved weights, without the checkpoint, predicts the same.
        """
        variant, reader = of_task(task), TASKS[task].readers[-1]
        params = variant.params(checkpoint(family))
        model, batch = variant.model(params), variant.batch(params, reader)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        step(model, batch)
        after = model.state_dict()
        assert network_of(model)
        for name in network_of(model):
            assert torch.equal(after[name], before[name])
        for place in ("text_field_embedder", "output_embedder"):
            name = f"{place}.token_embedder_elmo.mix.layer_weights"
            assert not torch.equal(after[name], before[name])
        saved = io.BytesIO()
        torch.save(after, saved)
        saved.seek(0)

        write_content(params)
        archived = json.loads(json.dumps(params).replace(str(checkpoint(family)), "/gone"))
        # As AllenNLP does where it loads an archive.
        archived["model"]["bilm"].pop("pretrained_file")
        loaded = variant.model(archived)
        loaded.load_state_dict(torch.load(saved))
        expected, found = model(**batch), loaded(**variant.batch(archived, reader))
        for key, value in expected.items():
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(found[key], value, msg=lambda text, key=key: f"{key}: {text}")
        assert loaded.make_output_human_readable(found)


class TestTrainedTransformers:
    @pytest.mark.parametrize("task", TASKS)
    def test_one_that_is_trained_changes(self, environment, of_task, checkpoint, task):
        """Oracle: after one step the weights of its layers are others; one pass for both places."""
        variant = of_task(task)
        params = variant.params(checkpoint("bert"))
        params["model"]["bilm"]["requires_grad"] = True
        model = variant.model(params)
        before = network_of(model)
        passes: list[Any] = []
        embedder = next(module for module in model.modules() if isinstance(module, ElmoTokenEmbedder))
        embedder.bilm.transformer.register_forward_pre_hook(lambda *args: passes.append(args))
        step(model, variant.batch(params, TASKS[task].readers[-1]))
        assert len(passes) == 1
        after = network_of(model)
        weights = [name for name in before if "layer.1" in name and "dense.weight" in name]
        assert weights
        assert not any(torch.equal(before[name], after[name]) for name in weights)
