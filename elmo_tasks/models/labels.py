"""Labels and their numbers, in a vocabulary, a config, a batch and an output."""

from typing import Any

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

__all__ = ["ids_of_words", "labels_of", "names_of", "readable_labels", "weights_of"]


def labels_of(vocab: Vocabulary) -> list[str]:
    """The labels in the order of their numbers."""
    return list(vocab.get_index_to_token_vocabulary("labels").values())


def weights_of(labels: list[str], weights: dict[str, float] | None) -> torch.Tensor | None:
    """
    The weight of each label in the loss, by `label_weights` of a config: a label has the weight of
    its name, a tag like `B-PER` also that of `PER`, and all others have 1. `None` without weights.
    """
    if weights is None:
        return None
    names = {_name(label) for label in labels}
    unknown = sorted(weights.keys() - set(labels) - names)
    if unknown:
        known = ", ".join(sorted(names))
        raise ConfigurationError(f"expected label_weights of {known}, got {unknown[0]!r}")
    weights_of_labels = []
    for label in labels:
        weight_of_name = weights.get(_name(label), 1.0)
        weights_of_labels.append(weights.get(label, weight_of_name))
    return torch.tensor(weights_of_labels)


def _name(label: str) -> str:
    """The label without the prefix of a tag."""
    if label[1:2] == "-":
        return label[2:]
    return label


def names_of(labels: list[str], rows: list[list[int]]) -> list[list[str]]:
    """The labels of the words of each sentence, from their numbers."""
    return [[labels[number] for number in row] for row in rows]


def ids_of_words(ids: torch.Tensor, mask: torch.Tensor) -> list[list[int]]:
    """The numbers of the words of each sentence, without padding."""
    return [row[words].tolist() for row, words in zip(ids, mask, strict=True)]


def readable_labels(logits: torch.Tensor, labels: list[str]) -> dict[str, Any]:
    """
    The `label` and the `probabilities` of each text, from logits of shape `(batch_size, n_labels)`.
    """
    probabilities = []
    for row in logits.softmax(-1).tolist():
        by_label = dict(zip(labels, row, strict=True))
        probabilities.append(dict(sorted(by_label.items())))
    best = [labels[number] for number in logits.argmax(-1).tolist()]
    return {"label": best, "probabilities": probabilities}
