"""The model of named entities."""

from typing import Any, Optional

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField, InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.modules.conditional_random_field.conditional_random_field import allowed_transitions
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.models.classification import FixedLabels, labels_of
from elmo_tasks.modules import (
    ContextualModel,
    best_tags,
    concat_dim,
    concat_embedding,
    construct_embedders,
    initialize,
    span_probabilities,
)
from elmo_tasks.tags import Span, tags_to_spans
from elmo_tasks.training import SpanF1

__all__ = ["NerTagger"]

_SCHEME = "BIOUL"


@Model.register("elmo_ner")
class NerTagger(FixedLabels):
    """
    Named entities as in the paper (section A.7, after Peters et al. 2017): biLSTMs over the embedded words, each with
    variational dropout on its input, a linear layer and a CRF over BIOUL tags. ELMo is concatenated with the words,
    with the output of the highest biLSTM, or with both; the two places mix the layers of one biLM, which runs once a
    batch.

    Registered as a `Model` with name "elmo_ner".

    # Parameters

    vocab : `Vocabulary`
        With the tags in the namespace `labels`.
    text_field_embedder : `Lazy[TextFieldEmbedder]`
        The input of the lowest encoder. Its `elmo` embedders take the `bilm` below.
    encoders : `List[Seq2SeqEncoder]`
        From the lowest to the highest; the paper has two.
    bilm : `ContextualModel`, optional
        The biLM, or a transformer in its place; required if an embedder is ELMo's.
    output_embedder : `Lazy[TextFieldEmbedder]`, optional
        Concatenated with the output of the highest encoder.
    dropout : `float`
        Of the input of each encoder: the same units at all words of a sentence.
    verbose_metrics : `bool`
        Whether the scores of each type of entity are among the metrics.
    initializer : `InitializerApplicator`, optional
        See `Model`.

    # Raises

    `ConfigurationError`
        If the widths of two parts do not match.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: Lazy[TextFieldEmbedder],
        encoders: list[Seq2SeqEncoder],
        bilm: Optional[ContextualModel] = None,
        output_embedder: Optional[Lazy[TextFieldEmbedder]] = None,
        dropout: float = 0.5,
        verbose_metrics: bool = False,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        # By name, from the config: `regularizer` and whatever else `Model` takes.
        super().__init__(vocab, **kwargs)
        self.text_field_embedder, self.output_embedder = construct_embedders(text_field_embedder, output_embedder, bilm)
        self.encoders = torch.nn.ModuleList(encoders)
        self.dropout = InputVariationalDropout(dropout)

        width = self.text_field_embedder.get_output_dim()
        for number, encoder in enumerate(encoders):
            if encoder.get_input_dim() != width:
                raise ConfigurationError(
                    f"encoder {number} of the NER model must have the input_size {width}, the width of its input, "
                    f"but has {encoder.get_input_dim()}"
                )
            width = encoder.get_output_dim()

        self._tags = dict(enumerate(labels_of(vocab)))
        self.n_labels = len(self._tags)
        self.tag_projection = torch.nn.Linear(concat_dim(width, self.output_embedder), self.n_labels)
        self.crf = ConditionalRandomField(self.n_labels, allowed_transitions(_SCHEME, self._tags))
        self._verbose_metrics = verbose_metrics
        self._span_f1 = SpanF1(tag[2:] for tag in self._tags.values() if tag != "O")
        initialize(self, initializer)

    def forward(
        self,
        tokens: TextFieldTensors,
        tags: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
            The sentences.
        tags : `torch.LongTensor`, optional
            Shape `(batch_size, timesteps)`.
        metadata : `List[Dict[str, Any]]`, optional
            With the `words` of each sentence.

        # Returns

        `Dict[str, Any]`
            `logits`, of shape `(batch_size, timesteps, n_tags)`; `mask`; `tag_ids`, the best sequence of each sentence;
            the `words`, if there is metadata; and the `loss` a sentence, if there are tags.
        """
        # Shape: (batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, timesteps, n_tags)
        logits = self._logits(tokens, mask)
        output: dict[str, Any] = {"logits": logits, "mask": mask}
        output["tag_ids"] = best_tags(self.crf, logits, mask)
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
        if tags is not None:
            # A sentence without words has the probability 1, which AllenNLP's CRF cannot compute. Shape: (batch_size,)
            has_words = mask.any(-1)
            if has_words.any():
                likelihood = self.crf(logits[has_words], tags[has_words], mask[has_words])
            else:
                likelihood = 0.0 * logits.sum()
            output["loss"] = -likelihood / len(logits)
            gold = [row[words].tolist() for row, words in zip(tags, mask, strict=True)]
            self._span_f1(self._tag_names(output["tag_ids"]), self._tag_names(gold))
        return output

    def _logits(self, tokens: TextFieldTensors, mask: torch.Tensor) -> torch.Tensor:
        """Shape `(batch_size, timesteps, n_tags)`."""
        if not mask.any():
            # Not all embedders and encoders take a batch without words.
            nothing = self.tag_projection.weight.new_zeros(*mask.shape, self.tag_projection.in_features)
            return self.tag_projection(nothing)
        # Shape: (batch_size, timesteps, dim)
        hidden = self.text_field_embedder(tokens)
        for encoder in self.encoders:
            hidden = encoder(self.dropout(hidden), mask)
        return self.tag_projection(concat_embedding(hidden, self.output_embedder, tokens))

    def _tag_names(self, sentences: list[list[int]]) -> list[list[str]]:
        return [[self._tags[index] for index in sentence] for sentence in sentences]

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            `words`; `tags` in the BIOUL scheme; and `spans`, each with its `label`, `start` and `end` (the first and
            the last word), `text`, and `score`: the probability that the CRF gives it.
        """
        readable: dict[str, Any] = {"words": output_dict["words"], "tags": [], "spans": []}
        logits, mask, tag_ids = (output_dict[key] for key in ("logits", "mask", "tag_ids"))
        readable["tags"] = self._tag_names(tag_ids)
        found = list(map(tags_to_spans, readable["tags"]))
        places = [[(start, end) for _, start, end in spans] for spans in found]
        scores = span_probabilities(self.crf, logits, mask, tag_ids, places)
        for words, spans, of_spans in zip(readable["words"], found, scores, strict=True):
            readable["spans"].append([_span(words, span, score) for span, score in zip(spans, of_spans, strict=True)])
        return readable

    def prediction_without_words(self) -> dict[str, Any]:
        """The prediction for a sentence without words, with the keys of `make_output_human_readable`."""
        return {"words": [], "tags": [], "spans": []}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`precision`, `recall` and `f1-measure` of entities, each `-overall`: see `SpanF1`."""
        metrics = self._span_f1.get_metric(reset)
        return {name: value for name, value in metrics.items() if self._verbose_metrics or name.endswith("-overall")}

    default_predictor = "elmo_sentence"


def _span(words: list[str], span: Span, score: float) -> dict[str, Any]:
    label, start, end = span
    return {"label": label, "start": start, "end": end, "text": " ".join(words[start : end + 1]), "score": score}
