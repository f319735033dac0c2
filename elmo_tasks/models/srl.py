"""The model of semantic roles."""

from typing import Any, Optional

import torch
from allennlp.common import Lazy
from allennlp.common.checks import check_dimensions_match
from allennlp.common.util import is_distributed
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import get_text_field_mask
from allennlp.training.metrics import SpanBasedF1Measure

from elmo_tasks.models.classification import FixedLabels
from elmo_tasks.modules import (
    BioDecoder,
    ContextualModel,
    concat_dim,
    concat_embedding,
    construct_embedders,
    initialize,
)
from elmo_tasks.tags import tags_to_spans
from elmo_tasks.training import SrlF1

__all__ = ["SemanticRoleLabeler"]


@Model.register("elmo_srl")
class SemanticRoleLabeler(FixedLabels):
    """
    Semantic roles as in the paper (section A.5, after He et al. 2017): the embedded words, each with a vector that says
    whether it is the predicate, go through highway LSTMs that alternate in direction, and a linear layer scores the BIO
    tags of arguments. Each tag is trained on its own; at evaluation, the best tags that BIO allows are found. ELMo
    is concatenated with the words, with the output of the encoder, or with both; the two places mix the layers of one
    biLM, which runs once a batch.

    Registered as a `Model` with name "elmo_srl".

    # Parameters

    vocab : `Vocabulary`
        With the tags in the namespace `labels`.
    text_field_embedder : `Lazy[TextFieldEmbedder]`
        The words. Its `elmo` embedders take the `bilm` below.
    encoder : `Seq2SeqEncoder`
        Of the words with their predicate vectors.
    bilm : `ContextualModel`, optional
        The biLM, or a transformer in its place; required if an embedder is ELMo's.
    output_embedder : `Lazy[TextFieldEmbedder]`, optional
        Concatenated with the output of the encoder.
    predicate_dim : `int`
        Width of the vector that says whether a word is the predicate.
    verbose_metrics : `bool`
        Whether the scores of each label are among the metrics.
    initializer : `InitializerApplicator`, optional
        See `Model`.

    # Raises

    `ConfigurationError`
        If the encoder's input is not as wide as words and predicate vectors.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: Lazy[TextFieldEmbedder],
        encoder: Seq2SeqEncoder,
        bilm: Optional[ContextualModel] = None,
        output_embedder: Optional[Lazy[TextFieldEmbedder]] = None,
        predicate_dim: int = 100,
        verbose_metrics: bool = False,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        # By name, from the config: `regularizer` and whatever else `Model` takes.
        super().__init__(vocab, **kwargs)
        self.text_field_embedder, self.output_embedder = construct_embedders(text_field_embedder, output_embedder, bilm)
        self.predicate_embedding = torch.nn.Embedding(2, predicate_dim)
        self.encoder = encoder
        check_dimensions_match(
            self.text_field_embedder.get_output_dim() + predicate_dim,
            encoder.get_input_dim(),
            "words with predicate vectors",
            "the encoder's input_size",
        )
        width = concat_dim(encoder.get_output_dim(), self.output_embedder)

        self._tags = vocab.get_index_to_token_vocabulary("labels")
        self.n_labels = len(self._tags)
        self.tag_projection = torch.nn.Linear(width, self.n_labels)
        self._decoder = BioDecoder(self._tags)
        self._verbose_metrics = verbose_metrics
        self._srl_f1 = SrlF1(tag[2:] for tag in self._tags.values() if tag != "O")
        # It refuses distributed training, which has the paper's score only.
        self._span_f1 = None if is_distributed() else SpanBasedF1Measure(vocab, "labels", ignore_classes=["V"])
        initialize(self, initializer)

    def forward(
        self,
        tokens: TextFieldTensors,
        verb_indicator: torch.Tensor,
        tags: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
            The sentences, one for each predicate.
        verb_indicator : `torch.LongTensor`
            Shape `(batch_size, timesteps)`: 1 at the predicate, 0 elsewhere.
        tags : `torch.LongTensor`, optional
            Shape `(batch_size, timesteps)`.
        metadata : `List[Dict[str, Any]]`, optional
            With the `words` of each sentence and its `verb`.

        # Returns

        `Dict[str, Any]`
            `logits`, of shape `(batch_size, timesteps, n_tags)`; `mask`; `words` and `verb`, if there is metadata; the
            `loss` a word, if there are tags; and, except in training, `tag_ids`, the best tags of each sentence.
        """
        # Shape: (batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, timesteps, n_tags)
        logits = self._logits(tokens, verb_indicator, mask)
        output: dict[str, Any] = {"logits": logits, "mask": mask}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
            output["verb"] = [sentence["verb"] for sentence in metadata]
        if tags is not None:
            loss = torch.nn.functional.cross_entropy(logits[mask], tags[mask], reduction="sum")
            output["loss"] = loss / mask.sum().clamp(min=1)
        if not self.training:
            output["tag_ids"] = self._decoder(logits, mask)
            if tags is not None:
                self._count(output["tag_ids"], tags, mask)
        return output

    def _logits(self, tokens: TextFieldTensors, verb_indicator: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Shape `(batch_size, timesteps, n_tags)`."""
        # Shape: (batch_size, timesteps, dim)
        words = torch.cat([self.text_field_embedder(tokens), self.predicate_embedding(verb_indicator)], -1)
        hidden = self.encoder(words, mask)
        return self.tag_projection(concat_embedding(hidden, self.output_embedder, tokens))

    def _count(self, tag_ids: list[list[int]], tags: torch.Tensor, mask: torch.Tensor) -> None:
        gold = [row[words].tolist() for row, words in zip(tags, mask, strict=True)]
        self._srl_f1(self._tag_names(tag_ids), self._tag_names(gold))
        if self._span_f1 is not None:
            predicted = torch.zeros_like(tags)
            predicted[mask] = torch.tensor([index for row in tag_ids for index in row], device=tags.device)
            self._span_f1(torch.nn.functional.one_hot(predicted, len(self._tags)), tags, mask)

    def _tag_names(self, sentences: list[list[int]]) -> list[list[str]]:
        return [[self._tags[index] for index in sentence] for sentence in sentences]

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            `words`; `verb`; `tags` in the BIO scheme; and a `description`, the sentence with its arguments in brackets:
            `[ARG0: Anna] [V: eats] [ARG1: an apple] .`
        """
        tags = self._tag_names(output_dict["tag_ids"])
        return {
            "words": output_dict["words"],
            "verb": output_dict["verb"],
            "tags": tags,
            "description": [_description(*pair) for pair in zip(output_dict["words"], tags, strict=True)],
        }

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            At evaluation, and not for the training data: `precision`, `recall`, `f1` and `perfect` of `SrlF1`, the
            paper's score; and `span-f1`, that of AllenNLP's `SpanBasedF1Measure`, except in distributed training.
        """
        if self.training:
            return {}
        metrics = self._srl_f1.get_metric(reset)
        if not self._verbose_metrics:
            metrics = {name: metrics[name] for name in ("precision", "recall", "f1", "perfect")}
        if self._span_f1 is not None:
            metrics["span-f1"] = self._span_f1.get_metric(reset)["f1-measure-overall"]
        return metrics

    default_predictor = "elmo_srl"


def _description(words: list[str], tags: list[str]) -> str:
    parts, end = [], 0
    for label, first, last in tags_to_spans(tags):
        parts += [*words[end:first], f"[{label}: {' '.join(words[first : last + 1])}]"]
        end = last + 1
    return " ".join([*parts, *words[end:]])
