"""Tests of each family of transformers at the input and the output of the models of all tasks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance
from allennlp.models import Model

from elmo_tasks.transformer.self_contained import write_content
from tests.paths import TRAINING_CONFIGS
from tests.task_models import BOTH, TASKS, TaskModel, model_of
from tests.transformer.checkpoints import FAMILIES

_TRANSFORMER = TRAINING_CONFIGS / "lib" / "transformer.libsonnet"


@pytest.fixture
def variant(write_variant: Callable[..., Path], checkpoint: Callable[[str], Path]) -> Callable[..., Path]:
    """Writes the variant of a task with the transformer of a family at both places."""

    def write(task: str, family: str, arguments: str = "") -> Path:
        call = f"(import '{_TRANSFORMER}')('{checkpoint(family)}'{arguments})"
        return write_variant(task, BOTH, contextual=call)

    return write


def few(made: TaskModel) -> list[Instance]:
    return made.instances[:2]


def step(made: TaskModel) -> None:
    """One step of training."""
    made.model.train()
    optimizer = torch.optim.Adam([p for p in made.model.parameters() if p.requires_grad], lr=0.01)
    made.model(**made.tensors(few(made)))["loss"].backward()
    optimizer.step()
    made.model.eval()


def network_of(model: Model) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items() if ".transformer.network." in name}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("task", TASKS)
class TestTransformersInEveryModel:
    def test_it_is_trained_saved_and_predicts(self, variant, tmp_path, task, family):
        """
        Oracle: after one step the transformer has the weights of its checkpoint, and the rest of the model has others;
        a model of the archived config with the saved weights, without the checkpoint, predicts the same.
        """
        config = variant(task, family)
        made = model_of(task, config)
        transformer, model = network_of(made.model), {k: v.clone() for k, v in made.model.state_dict().items()}
        step(made)
        assert transformer
        assert all(torch.equal(value, transformer[name]) for name, value in network_of(made.model).items())
        for place in ("text_field_embedder", "output_embedder"):
            name = f"{place}.token_embedder_elmo.mix.layer_weights"
            assert not torch.equal(made.model.state_dict()[name], model[name])
        torch.save(made.model.state_dict(), tmp_path / "weights.th")

        archived = json.loads(json.dumps(archive_of(config)).replace(f'/{family}"', '/gone"'))
        reader = DatasetReader.from_params(Params(archived[TASKS[task].readers[-1]]))
        loaded = Model.from_params(vocab=made.model.vocab, params=Params(archived["model"])).eval()
        loaded.load_state_dict(torch.load(tmp_path / "weights.th"))
        again = TaskModel(loaded, reader, made.instances)
        expected, found = (each.model(**each.tensors(few(made))) for each in (made, again))
        for key, value in expected.items():
            if isinstance(value, torch.Tensor):
                torch.testing.assert_close(found[key], value, msg=lambda text, key=key: f"{key}: {text}")
        assert loaded.make_output_human_readable(found)


class TestTrainedTransformers:
    @pytest.mark.parametrize("task", TASKS)
    def test_one_that_is_trained_changes(self, variant, task):
        """Oracle: after one step the weights of its layers are others; one pass for both places."""
        made = model_of(task, variant(task, "bert", ", lr=2e-5"))
        before = network_of(made.model)
        passes: list[Any] = []
        transformer = made.elmo_embedders()[0].bilm.transformer
        transformer.register_forward_pre_hook(lambda *args: passes.append(args))
        step(made)
        assert len(passes) == 1
        after = network_of(made.model)
        weights = [name for name in before if "layer.1" in name and "dense.weight" in name]
        assert weights
        assert not any(torch.equal(before[name], after[name]) for name in weights)


def archive_of(config: Path) -> dict[str, Any]:
    """The config as an archive has it and AllenNLP reads it: without the files of weights."""
    params: dict[str, Any] = Params.from_file(config).as_dict(quiet=True)
    write_content(params)
    _drop_weight_files(params)
    return params


def _drop_weight_files(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("pretrained_file", None)
        for child in value.values():
            _drop_weight_files(child)
