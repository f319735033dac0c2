"""Small models of the published templates, which the fixture `make_model` makes for the tests of all tasks."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

from elmo_tasks.modules import ElmoTokenEmbedder

TASKS = ["coref", "ner", "snli", "squad", "srl", "sst"]
PLACES = {"none": [], "input": ["input"], "output": ["output"], "both": ["input", "output"]}
BOTH = PLACES["both"]

# What makes models small that would be slow in their published sizes: arguments of templates, and what is laid over.
ARGUMENTS = {"snli": {"hidden": 6}, "sst": {"hidden": 6}}
OVERRIDES = {"srl": "{ model+: { encoder+: { hidden_size: 12, num_layers: 2 } } }"}
# Of the files for validation that ship, the first instances, where all of them would be slow.
N_INSTANCES = {"ner": 12, "squad": 5}


class TaskModel(NamedTuple):
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
        """The tensors of instances, each from what the reader's `text_to_instance` takes."""
        return self.tensors([self.reader.text_to_instance(*row) for row in rows])

    def elmo_embedders(self) -> list[ElmoTokenEmbedder]:
        """ELMo at each of its places, the input before the output."""
        return [module for module in self.model.modules() if isinstance(module, ElmoTokenEmbedder)]

    def enlarge(self) -> None:
        """Larger weights than at the beginning of a training, so that nothing is nearly equal."""
        for name, parameter in self.model.named_parameters():
            if ".bilm." not in name:
                parameter.data.mul_(2)


def variant_config(
    template: Path, elmo_at: list[str], overrides: str = "{}", small: bool = True, **arguments: Any
) -> str:
    """A variant as a user would write it: one call of the template, and what is laid over it."""
    task = template.name.removesuffix(".libsonnet")
    given = {"elmo_at": elmo_at, **(ARGUMENTS.get(task, {}) if small else {}), **arguments}
    call = ", ".join(f"{name}={value}" for name, value in given.items())
    return f"(import '{template}')({call}) + {OVERRIDES.get(task, '{}') if small else '{}'} + {overrides}\n"


def model_of(task: str, config: Path) -> TaskModel:
    """The model of a config, with random weights and the words of a few instances."""
    torch.manual_seed(0)
    params = Params.from_file(config)
    readers = ("validation_dataset_reader", "dataset_reader")
    reader = DatasetReader.from_params(next(params[name] for name in readers if name in params))
    instances = list(reader.read(params["validation_data_path"]))[: N_INSTANCES.get(task)]
    # GloVe does not matter here.
    params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
    vocab = Vocabulary.from_instances(instances)
    if task == "ner":
        vocab.add_tokens_to_namespace([f"{tag}-{label}" for label in ("LOC", "ORG", "PER") for tag in "BILU"], "labels")
    return TaskModel(Model.from_params(vocab=vocab, params=params["model"]).eval(), reader, instances)
