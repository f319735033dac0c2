"""
The table of tasks for the tests, and the small models from templates behind the fixture
`make_model`.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

from elmo_tasks import data, models
from elmo_tasks.modules import ElmoTokenEmbedder

PLACES = {"none": [], "input": ["input"], "output": ["output"], "both": ["input", "output"]}
BOTH = PLACES["both"]
# For tests of all places: with ELMo at both, a model has all its parts.
EACH_PLACE = [
    pytest.param("none", marks=pytest.mark.weekly),
    pytest.param("input", marks=pytest.mark.weekly),
    pytest.param("output", marks=pytest.mark.weekly),
    "both",
]

_GLOVE = "text_field_embedder.token_embedder_tokens.weight"


@dataclass(frozen=True, kw_only=True)
class Task:
    """What the tests of all tasks need to know about a task."""

    model: type[Model]
    reader: type[DatasetReader]
    # The config key, as in `differences`, of the width that ELMo at the input changes.
    input_width: str
    # The keys of the widths that ELMo at the output changes.
    output_widths: tuple[str, ...] = ()
    # Where the published variant has ELMo.
    elmo_at: tuple[str, ...] = ("input",)
    # The paper's lambda; 0 means no regularizer.
    elmo_l2: float = 0.0
    # Keys that ELMo changes regardless of where it is.
    always_changed: tuple[str, ...] = ()
    # The readers of the config, which all index ELMo's characters.
    readers: tuple[str, ...] = ("dataset_reader",)
    # Template arguments and overrides for a small model if the published sizes would be slow.
    small_arguments: dict[str, Any] = field(default_factory=dict)
    small_overrides: str = "{}"
    # The number of included validation instances to use; all if `None`.
    n_instances: int | None = None
    # The number of sentences in the first three instances.
    n_sentences: int = 3
    # The ends of the names of parameters other than the biLM's without a gradient, and the names of
    # parameters with a zero gradient: a softmax ignores a constant added to all its inputs.
    frozen: tuple[str, ...] = (_GLOVE,)
    unseen: frozenset[str] = frozenset()
    # Overrides for a model in which all other parameters have a gradient.
    gradient_overrides: str = "{}"
    # Settings of the test that trains, saves and loads it.
    batch_size: int = 8
    trained_overrides: str = "{}"

    def keys(self, elmo_at: Sequence[str]) -> set[str]:
        """The config keys that differ from the baseline."""
        keys = {
            "model.bilm",
            "model.text_field_embedder.token_embedders.elmo",
            *self.always_changed,
        }
        for reader in self.readers:
            keys.add(f"{reader}.token_indexers.elmo")
        if self.elmo_l2:
            keys.add("model.regularizer")
        if "input" in elmo_at:
            keys.add(self.input_width)
        if "output" in elmo_at:
            keys.add("model.output_embedder")
            keys.update(self.output_widths)
        return keys


_SMALL_COREF = "{ model+: { encoder+: { hidden_size: 20 }, hidden_dim: 10, dropout: 0 } }"

# Add a row for a new task to run the common tests on it.
TASKS = {
    "coref": Task(
        model=models.CorefResolver,
        reader=data.CorefReader,
        input_width="model.encoder.input_size",
        # All sentences of three documents.
        n_sentences=18,
        batch_size=2,
        trained_overrides=_SMALL_COREF,
        # Enough to keep some spans of several words with any random weights; spans of one word have
        # no attention.
        gradient_overrides="{ model+: { spans_per_word: 2 } }",
    ),
    "ner": Task(
        model=models.NerTagger,
        reader=data.NerReader,
        input_width="model.encoders.0.input_size",
        elmo_l2=0.1,
        n_instances=12,
        frozen=("constraint_mask",),
    ),
    "snli": Task(
        model=models.Esim,
        reader=data.SnliReader,
        input_width="model.encoder.input_size",
        output_widths=("model.projection_feedforward.input_dim",),
        elmo_at=("input", "output"),
        elmo_l2=0.001,
        # The larger model has more dropout and regularization, regardless of lambda.
        always_changed=("model.attention_dropout", "model.regularizer"),
        small_arguments={"hidden": 6},
        # Two per pair.
        n_sentences=6,
    ),
    "squad": Task(
        model=models.SquadModel,
        reader=data.SquadReader,
        input_width="model.contextual_encoder.input_size",
        elmo_at=("input", "output"),
        readers=("dataset_reader", "validation_dataset_reader"),
        n_instances=5,
        # A question and a passage per instance.
        n_sentences=6,
        unseen=frozenset({f"{name}.similarity._bias" for name in ("attention", "self_attention")}),
        batch_size=20,
    ),
    "srl": Task(
        model=models.SemanticRoleLabeler,
        reader=data.SrlReader,
        input_width="model.encoder.input_size",
        elmo_l2=0.001,
        small_overrides="{ model+: { encoder+: { hidden_size: 12, num_layers: 2 } } }",
        frozen=(),
    ),
    "sst": Task(
        model=models.BiattentiveClassifier,
        reader=data.SstReader,
        input_width="model.pre_encode_feedforward.input_dim",
        output_widths=("model.integrator.input_size",),
        elmo_at=("input", "output"),
        elmo_l2=0.001,
        readers=("dataset_reader", "validation_dataset_reader"),
        small_arguments={"hidden": 6},
        unseen=frozenset({"self_attention.bias"}),
        batch_size=16,
    ),
}


@dataclass(frozen=True)
class TaskModel:
    """A model in evaluation mode, the reader of its config, and the instances of its vocabulary."""

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
        """The tensors of instances, each from arguments of the reader's `text_to_instance`."""
        instances = [self.reader.text_to_instance(*row) for row in rows]
        return self.tensors(instances)

    def elmo_embedders(self) -> list[ElmoTokenEmbedder]:
        """The ELMo embedders, input before output."""
        return [module for module in self.model.modules() if isinstance(module, ElmoTokenEmbedder)]

    def enlarge(self) -> None:
        """Doubles the weights, so that no two vectors are nearly equal."""
        for name, parameter in self.model.named_parameters():
            if ".bilm." not in name:
                parameter.data.mul_(2)


# `pos_tagger.libsonnet`, which is not one of the six tasks of the paper.
PARTS_OF_SPEECH = Task(
    model=models.PosClassifier,
    reader=data.PosReader,
    input_width="model.encoder.input_size",
    small_arguments={"hidden": "8"},
    n_instances=20,
)


def variant_config(
    template: Path, elmo_at: list[str], overrides: str = "{}", small: bool = True, **arguments: Any
) -> str:
    """A variant as a user would write it: one call of the template, plus overrides."""
    task = TASKS.get(template.name.removesuffix(".libsonnet"), PARTS_OF_SPEECH)
    template_arguments: dict[str, Any] = {"elmo_at": elmo_at}
    small_overrides = "{}"
    if small:
        template_arguments |= task.small_arguments
        small_overrides = task.small_overrides
    template_arguments |= arguments
    call = ", ".join(f"{name}={value}" for name, value in template_arguments.items())
    return f"(import '{template}')({call}) + {small_overrides} + {overrides}\n"


_EVALUATED: dict[tuple[object, ...], str] = {}


def params_of(config: Path) -> Params:
    """
    Evaluates a config, but only once in an environment, because Jsonnet takes longer than a test of
    a model.
    """
    variables = []
    for name, value in sorted(os.environ.items()):
        if name.startswith("ELMO_TASKS_"):
            variables.append((name, value))
    key = (config.read_text(), *variables)
    if key not in _EVALUATED:
        evaluated = Params.from_file(config).as_dict(quiet=True)
        _EVALUATED[key] = json.dumps(evaluated)
    return Params(json.loads(_EVALUATED[key]))


def model_of(task: str, config: Path) -> TaskModel:
    """The model of a config, with random weights and the words of a few instances."""
    torch.manual_seed(0)
    params = params_of(config)
    n_instances = TASKS.get(task, PARTS_OF_SPEECH).n_instances
    reader_key = "dataset_reader"
    if "validation_dataset_reader" in params:
        reader_key = "validation_dataset_reader"
    reader = DatasetReader.from_params(params[reader_key])
    instances = list(reader.read(params["validation_data_path"]))[:n_instances]
    # GloVe does not matter here.
    params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
    vocab = Vocabulary.from_instances(instances)
    if task == "ner":
        tags = [f"{prefix}-{label}" for label in ("LOC", "ORG", "PER") for prefix in "BILU"]
        vocab.add_tokens_to_namespace(tags, "labels")
    model = Model.from_params(vocab=vocab, params=params["model"])
    return TaskModel(model.eval(), reader, instances)
