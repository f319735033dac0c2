"""Small models of the published templates that give a text one label, for the tests of models and predictors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

HIDDEN = 6


class Classifier(NamedTuple):
    """A model in evaluation mode, with the reader of its config and instances that its vocabulary comes from."""

    model: Model
    reader: DatasetReader
    instances: list[Instance]

    def tensors(self, instances: list[Instance]) -> dict[str, Any]:
        for instance in instances:
            self.reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self.model.vocab)
        return batch.as_tensor_dict()

    def batch(self, *rows: tuple[Any, ...]) -> dict[str, Any]:
        """The tensors of texts, each with what the reader's `text_to_instance` takes."""
        return self.tensors([self.reader.text_to_instance(*row) for row in rows])


def zeroes_of_inputs(model: Model, *parts: str) -> dict[str, torch.Tensor]:
    """Into which a batch puts, for each part of the model, where its input is zero."""
    zeroes: dict[str, torch.Tensor] = {}
    for name in parts:
        model.get_submodule(name).register_forward_pre_hook(
            lambda module, args, name=name: zeroes.update({name: args[0] == 0})
        )
    return zeroes


def write_variant(
    folder: Path, configs: Path, task: str, elmo_at: list[str], overrides: str = "{}", **arguments: Any
) -> Path:
    """A variant file, as a user would write it: one call of the template, here with few hidden units."""
    path = folder / "variant.jsonnet"
    call = ", ".join(f"{name}={value}" for name, value in {"hidden": HIDDEN, **arguments}.items())
    path.write_text(f"(import '{configs}/lib/{task}.libsonnet')(elmo_at={elmo_at}, {call}) + {overrides}\n")
    return path


@pytest.fixture
def make_classifier(
    tmp_path: Path, training_configs: Path, environment: pytest.MonkeyPatch
) -> Callable[..., Classifier]:
    """Makes the model of a variant, with random weights and the words of the data that ships."""

    def make(task: str, elmo_at: list[str], overrides: str = "{}", **arguments: Any) -> Classifier:
        torch.manual_seed(0)
        params = Params.from_file(write_variant(tmp_path, training_configs, task, elmo_at, overrides, **arguments))
        reader = DatasetReader.from_params(params["dataset_reader"])
        instances = list(reader.read(params["validation_data_path"]))
        # GloVe does not matter here.
        params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
        model = Model.from_params(vocab=Vocabulary.from_instances(instances), params=params["model"])
        return Classifier(model.eval(), reader, instances)

    return make
