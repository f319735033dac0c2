"""A predictor that writes the probabilities of all labels, for a student to learn from."""

from typing import Any

import torch
from allennlp.common.util import JsonDict
from allennlp.data import Batch, DatasetReader, Instance
from allennlp.data.fields import TextField
from allennlp.models import Model
from allennlp.predictors import Predictor

from elmo_tasks.models.elmo_model import labels_of
from elmo_tasks.modules.labels import soft_labels

__all__ = ["SoftLabelPredictor"]


@Predictor.register("elmo_soft_labels")
class SoftLabelPredictor(Predictor):
    """
    Reads the same lines as the model's own predictor, for named entities, sentiment and entailment. It writes the words
    of each text and the `probabilities` of all `labels`; for a tagger, these are the marginals of each word.
    """

    def __init__(self, model: Model, dataset_reader: DatasetReader, **kwargs: Any) -> None:
        kind: Any = Predictor.by_name(type(model).default_predictor or "")
        self._own = kind(model, dataset_reader, **kwargs)
        # A copy of the reader that does not read gold labels.
        super().__init__(model, self._own._dataset_reader)
        self._labels = labels_of(model.vocab)

    def load_line(self, line: str) -> JsonDict:
        loaded: JsonDict = self._own.load_line(line)
        return loaded

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        instance: Instance = self._own._json_to_instance(json_dict)
        return instance

    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    def predict_batch_instance(self, instances: list[Instance]) -> list[JsonDict]:
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        batch = Batch(instances)
        batch.index_instances(self._model.vocab)
        with torch.no_grad():
            output = self._model(**batch.as_tensor_dict())
            found = soft_labels(output["logits"], output.get("mask"), getattr(self._model, "crf", None))
        lines = []
        for instance, rows in zip(instances, found, strict=True):
            fields = instance.fields.items()
            words = {name: [t.text for t in field] for name, field in fields if isinstance(field, TextField)}
            rows = rows[: len(words["tokens"])] if rows.dim() == 2 else rows
            # Readers for single sentences take words; the reader for pairs takes two texts.
            texts = words if "tokens" in words else {name: " ".join(text) for name, text in words.items()}
            lines.append({**texts, "labels": self._labels, "probabilities": rows.tolist()})
        return lines
