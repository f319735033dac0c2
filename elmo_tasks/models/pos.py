"""The model for parts of speech."""

from typing import Any, Optional

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.models.simple_tagger import SimpleTagger
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn.util import get_text_field_mask, sequence_cross_entropy_with_logits

from elmo_tasks.metrics import TagF1
from elmo_tasks.models.elmo_model import warn_of_unknown_words
from elmo_tasks.models.labels import ids_of_words, labels_of, labels_of_ids, weights_of

__all__ = ["PosClassifier"]


@Model.register("elmo_pos")
class PosClassifier(SimpleTagger):
    """
    A linear classifier of the words on top of an encoder; the paper's Table 6 (section 5.3) uses a
    layer of the biLM instead of an encoder. It is AllenNLP's `SimpleTagger`, without its two rows
    of numbers per word in a prediction, and with the scores of each tag in an evaluation
    (`verbose_metrics`). `label_weights`: see `weights_of`.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        verbose_metrics: bool = True,
        label_weights: Optional[dict[str, float]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            vocab, text_field_embedder, encoder, verbose_metrics=verbose_metrics, **kwargs
        )
        self._tags = labels_of(vocab)
        self._label_weights: torch.Tensor | None
        weights = weights_of(self._tags, label_weights)
        self.register_buffer("_label_weights", weights, persistent=False)
        self._tag_f1 = TagF1()
        warn_of_unknown_words(vocab, text_field_embedder)

    def forward(
        self,
        tokens: TextFieldTensors,
        tags: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        ignore_loss_on_o_tags: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """See `SimpleTagger`; as in our other models, fields of other readers are ignored."""
        return self.decide(self.scores(tokens, metadata), tags)

    def scores(
        self,
        tokens: TextFieldTensors,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The output without the loss."""
        output: dict[str, Any] = super().forward(tokens, metadata=metadata)
        return {**output, "mask": get_text_field_mask(tokens)}

    def decide(self, output: dict[str, Any], tags: torch.Tensor | None = None) -> dict[str, Any]:
        """Adds the probabilities for the logits, and the loss."""
        logits, mask = output["logits"], output["mask"]
        output["class_probabilities"] = logits.softmax(-1)
        if tags is None:
            return output
        weights = self._label_weights
        output["loss"] = sequence_cross_entropy_with_logits(logits, tags, mask, alpha=weights)
        for metric in self.metrics.values():
            metric(logits, tags, mask)
        if not self.training:
            predicted = ids_of_words(logits.argmax(-1), mask)
            gold = ids_of_words(tags, mask)
            self._tag_f1(labels_of_ids(self._tags, predicted), labels_of_ids(self._tags, gold))
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """`words`, their `tags`, and the `probabilities` of the tags."""
        readable = super().make_output_human_readable(output_dict)
        tags = []
        probabilities = []
        best = readable["class_probabilities"].max(-1).values.tolist()
        for words, tag_row, row in zip(readable["words"], readable["tags"], best, strict=True):
            # AllenNLP also tags padding.
            tags.append(tag_row[: len(words)])
            probabilities.append(row[: len(words)])
        return {"words": readable["words"], "tags": tags, "probabilities": probabilities}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """
        `accuracy` and `accuracy3` (of the best three tags); in an evaluation, also `macro_f1`, the
        mean F1 of the tags, and of a whole one, the scores of each tag.
        """
        metrics: dict[str, float] = super().get_metrics(reset)
        if not self.training:
            metrics |= self._tag_f1.get_metric(reset, verbose=self._verbose_metrics and reset)
        return metrics

    default_predictor = "elmo_pos"
