"""Taggers of the published configs, for the tests of models and predictors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.models import Model

from elmo_tasks.data import NerReader
from elmo_tasks.models import NerTagger
from tests.models.classifiers import make_classifier

__all__ = ["make_classifier", "make_tagger", "snippet"]

PLACES = {"none": [], "input": ["input"], "output": ["output"], "both": ["input", "output"]}

BOTH = PLACES["both"]


class Tagger(NamedTuple):
    """A model in evaluation mode, with the reader of its config and sentences that its vocabulary comes from."""

    model: NerTagger
    reader: NerReader
    instances: list[Instance]

    def tensors(self, instances: list[Instance]) -> dict[str, Any]:
        for instance in instances:
            self.reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self.model.vocab)
        return batch.as_tensor_dict()

    def sentences(self, *sentences: list[str], tags: list[list[str]] | None = None) -> dict[str, Any]:
        """The tensors of sentences, with tags if they are given."""
        rows = tags or [None] * len(sentences)
        return self.tensors([self.reader.text_to_instance(*pair) for pair in zip(sentences, rows, strict=True)])


@pytest.fixture
def snippet(tmp_path: Path, training_configs: Path, environment: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a variant file, as a user would: one call of the template."""

    def write(elmo_at: list[str], overrides: str = "{}") -> Path:
        path = tmp_path / "variant.jsonnet"
        path.write_text(f"(import '{training_configs}/lib/ner.libsonnet')(elmo_at={elmo_at}) + {overrides}\n")
        return path

    return write


@pytest.fixture
def make_tagger(snippet: Callable[..., Path], fixtures_root: Path) -> Callable[..., Tagger]:
    """Makes the tagger of a variant, with random weights and the words of a few sentences."""

    def make(elmo_at: list[str], overrides: str = "{}") -> Tagger:
        torch.manual_seed(0)
        params = Params.from_file(snippet(elmo_at, overrides))
        reader = DatasetReader.from_params(params["dataset_reader"])
        assert isinstance(reader, NerReader)
        instances = list(reader.read(str(fixtures_root / "ner" / "dev.txt")))[:12]
        # GloVe does not matter here.
        params["model"]["text_field_embedder"]["token_embedders"]["tokens"].pop("pretrained_file")
        all_tags = [f"{prefix}-{label}" for label in ("LOC", "ORG", "PER") for prefix in "BIIB"]
        with_all_tags = reader.text_to_instance(["word"] * len(all_tags), all_tags)
        reader.apply_token_indexers(with_all_tags)
        vocab = Vocabulary.from_instances([*instances, with_all_tags])
        model = Model.from_params(vocab=vocab, params=params["model"])
        assert isinstance(model, NerTagger)
        return Tagger(model.eval(), reader, instances)

    return make
