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
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.token_embedders.embedding import Embedding, EmbeddingsTextFile
from allennlp.nn import InitializerApplicator

# Exported again, for models of users.
from elmo_tasks.models.labels import labels_of
from elmo_tasks.modules import ContextualModel

__all__ = ["ElmoModel", "labels_of", "warn_of_unknown_words"]

logger = logging.getLogger(__name__)

# Word vectors of the right language cover at least this share of the running words of the training
# data.
_MIN_COVERAGE = 0.2
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


def warn_of_unknown_words(vocab: Vocabulary, embedder: TextFieldEmbedder) -> None:
    """
    Logs a warning if word vectors lack most running words of the training data, probably because
    they are for a different language.
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
    enough = _MIN_COVERAGE * n_words
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
    The number of running words of the training data that have a vector in a file. Reading stops
    when there are `enough`.
    """
    n_known = 0
    with EmbeddingsTextFile(path) as lines:
        for line in lines:
            word, _, _ = line.partition(" ")
            n_known += counts.get(word, 0)
            if n_known >= enough:
                break
    return n_known
