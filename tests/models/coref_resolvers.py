"""Models of coreference of the published configs, for the tests of models and predictors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

from elmo_tasks.data import CorefReader
from elmo_tasks.models import CorefResolver

__all__ = ["Resolver", "coref_snippet", "make_resolver"]


class Resolver(NamedTuple):
    """A model in evaluation mode, with the reader of its config and documents that its vocabulary comes from."""

    model: CorefResolver
    reader: CorefReader
    instances: list[Instance]

    def tensors(self, instances: list[Instance]) -> dict[str, Any]:
        for instance in instances:
            self.reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self.model.vocab)
        return batch.as_tensor_dict()

    def document(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The tensors of a document as the reader takes it."""
        return self.tensors([self.reader.text_to_instance(*args, **kwargs)])


@pytest.fixture
def coref_snippet(tmp_path: Path, training_configs: Path, environment: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a variant file, as a user would: one call of the template."""

    def write(elmo_at: list[str], overrides: str = "{}") -> Path:
        path = tmp_path / "variant.jsonnet"
        path.write_text(f"(import '{training_configs}/lib/coref.libsonnet')(elmo_at={elmo_at}) + {overrides}\n")
        return path

    return write


@pytest.fixture
def make_resolver(coref_snippet: Callable[..., Path], fixtures_root: Path) -> Callable[..., Resolver]:
    """Makes the model of a variant, with random weights and the words of a few documents."""

    def make(elmo_at: list[str], overrides: str = "{}") -> Resolver:
        torch.manual_seed(0)
        params = Params.from_file(coref_snippet(elmo_at, overrides))
        reader = DatasetReader.from_params(params["dataset_reader"])
        assert isinstance(reader, CorefReader)
        instances = list(reader.read(str(fixtures_root / "coref" / "dev.conll")))
        # GloVe does not matter here.
        params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
        model = Model.from_params(vocab=Vocabulary.from_instances(instances), params=params["model"])
        assert isinstance(model, CorefResolver)
        return Resolver(model.eval(), reader, instances)

    return make
