"""Labelers of the published configs, for the tests of the model and the predictor of semantic roles."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

from elmo_tasks.data import SrlReader
from elmo_tasks.models import SemanticRoleLabeler

ROOT = Path(__file__).resolve().parents[1]
# Two layers of 12 units in place of 8 of 300.
SMALL = "{ model+: { encoder+: { hidden_size: 12, num_layers: 2 } } }"


class Labeler(NamedTuple):
    """A model in evaluation mode, with the reader of its config and propositions that its vocabulary comes from."""

    model: SemanticRoleLabeler
    reader: SrlReader
    instances: list[Instance]

    def tensors(self, instances: list[Instance]) -> dict[str, Any]:
        for instance in instances:
            self.reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self.model.vocab)
        return batch.as_tensor_dict()

    def sentences(self, *sentences: str, tags: list[str] | None = None) -> dict[str, Any]:
        """The tensors of sentences, their second word the predicate, with tags if they are given."""
        rows = [sentence.split() for sentence in sentences]
        tag_rows = [None] * len(rows) if tags is None else [row.split() for row in tags]
        return self.tensors(
            [
                self.reader.text_to_instance(words, [int(index == 1) for index in range(len(words))], row)
                for words, row in zip(rows, tag_rows, strict=True)
            ]
        )


def write_variant(folder: Path, elmo_at: list[str], overrides: str = SMALL) -> Path:
    """A variant file, as a user would write it: one call of the template."""
    path = folder / "variant.jsonnet"
    path.write_text(f"(import '{ROOT}/training_configs/lib/srl.libsonnet')(elmo_at={elmo_at}) + {overrides}\n")
    return path


def make_labeler(folder: Path, elmo_at: list[str], overrides: str = SMALL) -> Labeler:
    """The labeler of a variant, with random weights and the words and labels of the small data."""
    torch.manual_seed(0)
    params = Params.from_file(write_variant(folder, elmo_at, overrides))
    reader = DatasetReader.from_params(params["dataset_reader"])
    assert isinstance(reader, SrlReader)
    instances = list(reader.read(str(ROOT / "fixtures" / "srl" / "dev")))
    # GloVe does not matter here.
    params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
    model = Model.from_params(vocab=Vocabulary.from_instances(instances), params=params["model"])
    assert isinstance(model, SemanticRoleLabeler)
    return Labeler(model.eval(), reader, instances)
