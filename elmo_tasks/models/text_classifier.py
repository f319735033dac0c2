"""What the models that choose a label for a text, or for a pair of texts, share."""

from typing import Any, Optional

import torch
from allennlp.data import Vocabulary
from allennlp.training.metrics import CategoricalAccuracy
from torch.nn.functional import cross_entropy

from elmo_tasks.metrics import TagF1
from elmo_tasks.models.elmo_model import ElmoModel
from elmo_tasks.models.labels import labels_of, labels_of_ids, weights_of

__all__ = ["TextClassifier"]


class TextClassifier(ElmoModel):
    """
    A model whose output has `logits` of shape `(batch_size, n_labels)`.

    # Parameters

    label_weights : `Dict[str, float]`, optional
        See `weights_of`.
    """

    def __init__(
        self, vocab: Vocabulary, label_weights: Optional[dict[str, float]] = None, **kwargs: Any
    ) -> None:
        super().__init__(vocab, **kwargs)
        self._labels = labels_of(vocab)
        self._label_weights: torch.Tensor | None
        weights = weights_of(self._labels, label_weights)
        self.register_buffer("_label_weights", weights, persistent=False)
        self._accuracy = CategoricalAccuracy()
        self._label_f1 = TagF1()

    def decide(self, output: dict[str, Any], label: torch.Tensor | None = None) -> dict[str, Any]:
        """Adds the loss. `label` has shape `(batch_size,)`."""
        if label is not None:
            logits = output["logits"]
            output["loss"] = cross_entropy(logits, label, weight=self._label_weights)
            self._accuracy(logits, label)
            if not self.training:
                # The texts of the batch count as the words of one sentence.
                predicted = labels_of_ids(self._labels, [logits.argmax(-1).tolist()])
                gold = labels_of_ids(self._labels, [label.tolist()])
                self._label_f1(predicted, gold)
        return output

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`accuracy`; in an evaluation, also `macro_f1`, the mean F1 of the labels."""
        metrics = {"accuracy": self._accuracy.get_metric(reset)}
        if not self.training:
            metrics |= self._label_f1.get_metric(reset)
        return metrics
