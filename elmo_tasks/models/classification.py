"""Functions of the models that give a text one label."""

from typing import Any, Optional

import torch
from allennlp.common.checks import ConfigurationError, check_dimensions_match
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.nn.util import masked_softmax

__all__ = ["FixedLabels", "check_widths", "labels_of", "readable_labels", "softmax_over_words"]


class FixedLabels(Model):
    """A model with an output for each label of its training data, and for no other one."""

    label_namespace: str = "labels"

    n_labels: int
    """Its outputs, which a subclass sets."""

    def extend_embedder_vocab(self, embedding_sources_mapping: Optional[dict[str, str]] = None) -> None:
        """
        # Raises

        `ConfigurationError`
            If the vocabulary was extended by a label.
        """
        labels = labels_of(self.vocab, self.label_namespace)
        if new := labels[self.n_labels :]:
            raise ConfigurationError(
                f"the labels must be those that the model was trained with ({', '.join(labels[: self.n_labels])}), "
                f"but there are others too: {', '.join(new)}. Remove them from the data; or train a new model, which "
                'may take all other weights from the archive by an initializer "pretrained"'
            )
        super().extend_embedder_vocab(embedding_sources_mapping)


def check_widths(*parts: tuple[str, int, str, FeedForward | Seq2SeqEncoder]) -> None:
    """
    # Parameters

    parts : `Tuple[str, int, str, FeedForward or Seq2SeqEncoder]`
        The name of an input, its width, the name of the part that takes it, and the part.

    # Raises

    `ConfigurationError`
        If a part takes another width.
    """
    for input_name, width, name, part in parts:
        check_dimensions_match(width, part.get_input_dim(), f"the width of {input_name}", f"that of {name}'s input")


def labels_of(vocab: Vocabulary, namespace: str = "labels") -> list[str]:
    """
    The labels in a namespace, by their numbers.

    # Raises

    `ConfigurationError`
        If there are none.
    """
    labels = vocab.get_index_to_token_vocabulary(namespace)
    if not labels:
        raise ConfigurationError(
            "the vocabulary must have the labels of the training data, but has none: is the training file one without "
            "labels, as for predictions?"
        )
    return [labels[index] for index in range(len(labels))]


def readable_labels(logits: torch.Tensor, labels: list[str]) -> dict[str, Any]:
    """
    # Parameters

    logits : `torch.Tensor`
        Shape `(batch_size, n_labels)`.
    labels : `List[str]`
        By their numbers.

    # Returns

    `Dict[str, Any]`
        For each text its `label`, and the `probabilities` of all labels, in the order of their names.
    """
    rows = logits.softmax(-1).tolist()
    return {
        "label": [labels[index] for index in logits.argmax(-1).tolist()],
        "probabilities": [dict(sorted(zip(labels, row, strict=True))) for row in rows],
    }


def softmax_over_words(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    # Parameters

    scores : `torch.Tensor`
        Shape `(batch_size, n_rows, timesteps)`.
    mask : `torch.BoolTensor`
        Shape `(batch_size, timesteps)`: the words, at least one in each text.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, n_rows, timesteps)`: rows of weights, 0 where there is no word.
    """
    # Without `memory_efficient`, AllenNLP gives padding the score 0, and words with much lower scores lose their
    # weights.
    return masked_softmax(scores, mask.unsqueeze(1), memory_efficient=True)
