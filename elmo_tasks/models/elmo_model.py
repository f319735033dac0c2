"""
What the task models share: ELMo at the input and at the output of an encoder (section 3.3 of the
paper).
"""

import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Optional

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.token_embedders.embedding import Embedding, EmbeddingsTextFile
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import masked_softmax

from elmo_tasks.modules import ContextualModel

__all__ = [
    "ElmoModel",
    "concat_texts",
    "ids_of_words",
    "labels_of",
    "names_of",
    "readable_labels",
    "softmax_over_words",
    "warn_of_unknown_words",
    "weights_of",
    "without_repetitions",
]

logger = logging.getLogger(__name__)

# The smallest share of the words of a training, as they occur, that word vectors of its language
# have.
_MIN_KNOWN = 0.2
_WITHOUT_VECTORS = (
    '{"vocabulary.pretrained_files": null, '
    '"model.text_field_embedder.token_embedders.tokens.pretrained_file": null, '
    '"model.text_field_embedder.token_embedders.tokens.trainable": true}'
)


class ElmoModel(Model):
    """
    A model with ELMo at the input of an encoder, at its output, or at both. The embedders at the
    two places mix the layers with their own weights and share one biLM, which runs once per batch.
    `forward` takes and ignores other fields, such as the `dataset` that the reader "interleaving"
    adds.

    # Parameters

    bilm : `ContextualModel`, optional
        The biLM, or a transformer instead, that all `elmo` embedders share.
    initializer : `InitializerApplicator`, optional
        Applied after all parts are created. Frozen weights keep their values, even with the type
        "pretrained".
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: Lazy[TextFieldEmbedder],
        bilm: Optional[ContextualModel] = None,
        output_embedder: Optional[Lazy[TextFieldEmbedder]] = None,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        # `kwargs` has `regularizer` and the other parameters of `Model`, from the config.
        super().__init__(vocab, **kwargs)
        # The embedders are lazy, because they take the biLM.
        shared = {} if bilm is None else {"bilm": bilm}
        self.text_field_embedder = text_field_embedder.construct(**shared)
        warn_of_unknown_words(vocab, self.text_field_embedder)
        self.output_embedder: TextFieldEmbedder | None = None
        if output_embedder is not None:
            self.output_embedder = output_embedder.construct(**shared)
        self._initializer = initializer

    def width_with_elmo(self, width: int) -> int:
        """The last dimension of `with_elmo(hidden, tokens)`, for a `hidden` of `width`."""
        if self.output_embedder is None:
            return width
        return width + int(self.output_embedder.get_output_dim())

    def with_elmo(
        self,
        hidden: torch.Tensor,
        tokens: TextFieldTensors,
        rows: torch.Tensor | slice = slice(None),
    ) -> torch.Tensor:
        """
        The output of an encoder, concatenated with ELMo if configured: shape
        `(batch_size, timesteps, width)`. `rows` are the rows of `tokens`, if not the same as the
        rows of `hidden`; see `without_repetitions`.
        """
        if self.output_embedder is None:
            return hidden
        elmo = self.output_embedder(tokens)[rows]
        return torch.cat([hidden, elmo], -1)

    def initialize(self) -> None:
        """
        Applies the config's initializers to trainable weights; a subclass calls it at the end of
        its constructor.
        """
        if self._initializer is None:
            return
        trained = []
        for name, weight in self.named_parameters():
            if weight.requires_grad:
                trained.append((name, weight))
        self._initializer(SimpleNamespace(named_parameters=lambda: trained))


def concat_texts(one: TextFieldTensors, other: TextFieldTensors) -> TextFieldTensors:
    """
    Joins two batches of texts, so the biLM and a shared encoder run once: first the texts of `one`,
    then the texts of `other`. Every dimension but the first has the larger size of the two.
    """
    joined: TextFieldTensors = {}
    for indexer, tensors in one.items():
        joined[indexer] = {}
        for name, tensor in tensors.items():
            joined[indexer][name] = _concat(tensor, other[indexer][name])
    return joined


def _concat(above: torch.Tensor, below: torch.Tensor) -> torch.Tensor:
    sizes = [max(pair) for pair in zip(above.shape[1:], below.shape[1:], strict=True)]
    # Indexers pad with zero, which is padding in a vocabulary, no character, and False in a mask.
    joined = above.new_zeros(len(above) + len(below), *sizes)
    joined[(slice(None, len(above)), *map(slice, above.shape[1:]))] = above
    joined[(slice(len(above), None), *map(slice, below.shape[1:]))] = below
    return joined


def without_repetitions(tokens: TextFieldTensors) -> tuple[TextFieldTensors, torch.Tensor]:
    """
    The texts of a batch without those that repeat the text before, and the row in them of each text
    of the batch.
    """
    flat = []
    for tensors in tokens.values():
        for tensor in tensors.values():
            flat.append(tensor.flatten(1))
    # Shape: (batch_size, n_ids)
    ids = torch.cat(flat, 1)
    # Shape: (batch_size,)
    is_new = torch.nn.functional.pad((ids[1:] != ids[:-1]).any(1), (1, 0), value=True)
    distinct: TextFieldTensors = {}
    for indexer, tensors in tokens.items():
        distinct[indexer] = {name: tensor[is_new] for name, tensor in tensors.items()}
    return distinct, is_new.cumsum(0) - 1


def warn_of_unknown_words(vocab: Vocabulary, embedder: TextFieldEmbedder) -> None:
    """
    At the start of a training, a warning if word vectors lack most words, as in a different
    language.
    """
    # How often each word occurs in the data; an archive's vocabulary has no counts.
    counts_by_namespace = getattr(vocab, "_retained_counter", None) or {}
    counts = counts_by_namespace.get("tokens")
    if not counts:
        return
    paths = set()
    for module in embedder.modules():
        if isinstance(module, Embedding) and module._pretrained_file:
            paths.add(module._pretrained_file)
    n_words = sum(counts.values())
    enough = _MIN_KNOWN * n_words
    for path in paths:
        n_known = _count_known(path, counts, enough)
        if n_known < enough:
            logger.warning(
                "%s has vectors for %d of %d words of the data; for a different language, train "
                "without: -o '%s'",
                path,
                n_known,
                n_words,
                _WITHOUT_VECTORS,
            )


def _count_known(path: str, counts: Mapping[str, int], enough: float) -> int:
    """
    How many of the words of a training, as they occur, have a vector in a file, which is read until
    there are enough.
    """
    n_known = 0
    with EmbeddingsTextFile(path) as lines:
        for line in lines:
            word, _, _ = line.partition(" ")
            n_known += counts.get(word, 0)
            if n_known >= enough:
                break
    return n_known


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
    names = {label: label[2:] if label[1:2] == "-" else label for label in labels}
    known_names = sorted(set(names.values()))
    unknown = sorted(weights.keys() - set(labels) - set(known_names))
    if unknown:
        known = ", ".join(known_names)
        raise ConfigurationError(f"expected label_weights of {known}, got {unknown[0]!r}")
    weights_of_labels = []
    for label in labels:
        weight_of_name = weights.get(names[label], 1.0)
        weights_of_labels.append(weights.get(label, weight_of_name))
    return torch.tensor(weights_of_labels)


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


def softmax_over_words(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """
    Over the last dimension of `(batch_size, n_rows, timesteps)`, with a mask of shape
    `(batch_size, timesteps)`.
    """
    # Without `memory_efficient`, AllenNLP gives padding the score 0, and much lower scores lose
    # their weights.
    return masked_softmax(scores, mask.unsqueeze(1), memory_efficient=True)
