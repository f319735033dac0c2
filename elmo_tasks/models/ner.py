"""The model for named entities."""

from typing import Any, Optional

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField, InputVariationalDropout, Seq2SeqEncoder
from allennlp.modules.conditional_random_field import ConditionalRandomFieldWeightLannoy
from allennlp.modules.conditional_random_field.conditional_random_field import allowed_transitions
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.metrics import SpanF1
from elmo_tasks.models.elmo_model import ElmoModel
from elmo_tasks.models.labels import ids_of_words, labels_of, labels_of_ids, weights_of
from elmo_tasks.modules.decoding import best_tags, crf_scores, tag_probabilities
from elmo_tasks.text.tags import TypedSpan, tags_to_spans

__all__ = ["NerTagger"]


@Model.register("elmo_ner")
class NerTagger(ElmoModel):
    """
    Named entities as in the paper (section A.7, after Peters et al. 2017): biLSTMs over the
    embedded words, each with variational dropout on its input, a linear layer and a CRF over BIOUL
    tags. ELMo is concatenated with the words, with the output of the highest biLSTM, or with both.
    The `encoders` are in order from the lowest to the highest; the paper has two. `verbose_metrics`
    adds the scores of each label to an evaluation. With `label_weights`, see `weights_of`, the loss
    is that of Lannoy et al. (2012).
    """

    def __init__(
        self,
        vocab: Vocabulary,
        encoders: list[Seq2SeqEncoder],
        dropout: float = 0.5,
        verbose_metrics: bool = True,
        label_weights: Optional[dict[str, float]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.encoders = torch.nn.ModuleList(encoders)
        self.dropout = InputVariationalDropout(dropout)
        self._tags = labels_of(vocab)
        width = self.width_with_elmo(encoders[-1].get_output_dim())
        self.tag_projection = torch.nn.Linear(width, len(self._tags))
        rules = allowed_transitions("BIOUL", dict(enumerate(self._tags)))
        weights = weights_of(self._tags, label_weights)
        if weights is None:
            self.crf = ConditionalRandomField(len(self._tags), rules)
        else:
            self.crf = ConditionalRandomFieldWeightLannoy(len(self._tags), weights.tolist(), rules)
        self._span_f1 = SpanF1()
        self._verbose_metrics = verbose_metrics
        self.initialize()

    def forward(
        self,
        tokens: TextFieldTensors,
        tags: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        `tags` have shape `(batch_size, timesteps)`; `metadata` has the `words` of each sentence.
        The output has `logits`, of shape `(batch_size, timesteps, n_tags)`; `mask`; `tag_ids`, the
        best sequence of each sentence; the `words`, if there is metadata; and the `loss` per
        sentence, if there are tags.
        """
        return self.decide(self.scores(tokens, metadata), tags)

    def scores(
        self,
        tokens: TextFieldTensors,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The output without what depends on the CRF or on gold tags."""
        # Shape: (batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, timesteps, dim)
        hidden = self.text_field_embedder(tokens)
        for encoder in self.encoders:
            hidden = encoder(self.dropout(hidden), mask)
        # Shape: (batch_size, timesteps, n_tags)
        logits = self.tag_projection(self.with_elmo(hidden, tokens))
        output: dict[str, Any] = {"logits": logits, "mask": mask}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
        return output

    def decide(self, output: dict[str, Any], tags: torch.Tensor | None = None) -> dict[str, Any]:
        """Adds the best tags for the logits, and the loss."""
        logits, mask = output["logits"], output["mask"]
        tag_ids = best_tags(logits, mask, crf_scores(self.crf))
        output["tag_ids"] = tag_ids
        if tags is not None:
            output["loss"] = -self.crf(logits, tags, mask) / len(logits)
            gold = ids_of_words(tags, mask)
            self._span_f1(labels_of_ids(self._tags, tag_ids), labels_of_ids(self._tags, gold))
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `words`; `tags` in the BIOUL scheme; `spans`, each with its `label`, `start` and `end` (the
        first and the last word), `text`, and `score`, its probability under the CRF; and
        `probability`, of all tags of the sentence.
        """
        tag_ids = output_dict["tag_ids"]
        tags = labels_of_ids(self._tags, tag_ids)
        labeled_spans = [tags_to_spans(sentence_tags) for sentence_tags in tags]
        bounds = []
        for sentence_spans in labeled_spans:
            bounds.append([(first, last) for _, first, last in sentence_spans])
        sentence_probabilities, span_probabilities = tag_probabilities(
            self.crf, output_dict["logits"], output_dict["mask"], tag_ids, bounds
        )
        spans = []
        for words, sentence_spans, probabilities in zip(
            output_dict["words"], labeled_spans, span_probabilities, strict=True
        ):
            spans.append(_readable_spans(words, sentence_spans, probabilities))
        return {
            "words": output_dict["words"],
            "tags": tags,
            "spans": spans,
            "probability": sentence_probabilities,
        }

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """See `SpanF1`. The scores of each label belong to a whole evaluation."""
        is_whole = reset and not self.training
        return self._span_f1.get_metric(reset, verbose=self._verbose_metrics and is_whole)

    default_predictor = "elmo_ner"


def _readable_spans(
    words: list[str], spans: list[TypedSpan], probabilities: list[float]
) -> list[dict[str, Any]]:
    """The spans of a sentence, as in a prediction."""
    readable = []
    for (label, first, last), probability in zip(spans, probabilities, strict=True):
        text = " ".join(words[first : last + 1])
        readable.append(
            {"label": label, "start": first, "end": last, "text": text, "score": probability}
        )
    return readable
