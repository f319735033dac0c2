"""Models of the published SQuAD configs, for the tests of models and predictors."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

from elmo_tasks.data import SquadReader
from elmo_tasks.models import SquadModel

CHECKOUT = Path(__file__).resolve().parents[1]


class Answerer(NamedTuple):
    """A model in evaluation mode, with the reader of its config and questions that its vocabulary comes from."""

    model: SquadModel
    reader: SquadReader
    instances: list[Instance]

    def tensors(self, instances: list[Instance]) -> dict[str, Any]:
        for instance in instances:
            self.reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self.model.vocab)
        return batch.as_tensor_dict()

    def questions(self, *questions: tuple[Any, ...]) -> dict[str, Any]:
        """The tensors of questions, each with its passage, and with answers if they are given."""
        return self.tensors([self.reader.text_to_instance(*question) for question in questions])


def write_squad_config(folder: Path, elmo_at: list[str], overrides: str = "{}") -> Path:
    """A variant file, as a user would write it: one call of the template."""
    path = folder / "variant.jsonnet"
    template = CHECKOUT / "training_configs" / "lib" / "squad.libsonnet"
    path.write_text(f"(import '{template}')(elmo_at={elmo_at}) + {overrides}\n")
    return path


def make_squad_model(folder: Path, elmo_at: list[str], overrides: str = "{}") -> Answerer:
    """The model of a variant, with random weights and the words of a few questions."""
    torch.manual_seed(0)
    params = Params.from_file(write_squad_config(folder, elmo_at, overrides))
    reader = DatasetReader.from_params(params["validation_dataset_reader"])
    assert isinstance(reader, SquadReader)
    instances = list(reader.read(str(CHECKOUT / "fixtures" / "squad" / "dev.json")))[:5]
    # GloVe does not matter here.
    params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
    for instance in instances:
        reader.apply_token_indexers(instance)
    vocab = Vocabulary.from_instances(instances)
    model = Model.from_params(vocab=vocab, params=params["model"])
    assert isinstance(model, SquadModel)
    return Answerer(model.eval(), reader, instances)
