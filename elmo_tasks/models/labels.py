"""Labels and their ids, in a vocabulary, a config, a batch and an output."""

from typing import Any

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

__all__ = ["ids_of_words", "labels_of", "labels_of_ids", "readable_labels", "weights_of"]


def labels_of(vocab: Vocabulary) -> list[str]:
    """The labels in the order of their ids."""
    return list(vocab.get_index_to_token_vocabulary("labels").values())


def weights_of(labels: list[str], weights: dict[str, float] | None) -> torch.Tensor | None:
    """
    The weight of each label in the loss, or `None` without `weights`, the `label_weights` of a
    config. A tag such as `B-PER` may be listed there itself, or as `PER`. Labels that are not
    listed have the weight 1.
    """
    if weights is None:
        return None
    unprefixed = {_without_prefix(label) for label in labels}
    unknown = sorted(weights.keys() - set(labels) - unprefixed)
    if unknown:
        known = ", ".join(sorted(unprefixed))
        raise ConfigurationError(f"expected label_weights of {known}, got {unknown[0]!r}")
    weights_of_labels = []
    for label in labels:
        weight_of_unprefixed = weights.get(_without_prefix(label), 1.0)
        weights_of_labels.append(weights.get(label, weight_of_unprefixed))
    return torch.tensor(weights_of_labels)


def _without_prefix(label: str) -> str:
    """The label of a tag: `PER` of `B-PER`."""
    if label[1:2] == "-":
        return label[2:]
    return label


def labels_of_ids(labels: list[str], ids: list[list[int]]) -> list[list[str]]:
    """The labels of the words of each sentence, from their ids, which are indices of `labels`."""
    return [[labels[label_id] for label_id in row] for row in ids]


def ids_of_words(ids: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
    """The ids of the words of each sentence, without those of the padding."""
    return [row[words].tolist() for row, words in zip(ids, mask, strict=True)]


def readable_labels(logits: torch.Tensor, labels: list[str]) -> dict[str, Any]:
    """
    The `label` and the `probabilities` of each text, from logits of shape `(batch_size, n_labels)`.
    """
    probabilities = []
    for row in logits.softmax(-1).tolist():
        by_label = dict(zip(labels, row, strict=True))
        probabilities.append(dict(sorted(by_label.items())))
    best = [labels[label_id] for label_id in logits.argmax(-1).tolist()]
    return {"label": best, "probabilities": probabilities}
