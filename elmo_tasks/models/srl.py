"""The model for semantic roles."""

from typing import Any, Optional

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask
from torch.nn.functional import cross_entropy

from elmo_tasks.metrics import SrlF1
from elmo_tasks.models.elmo_model import (
    ElmoModel,
    ids_of_words,
    labels_of,
    names_of,
    weights_of,
    without_repetitions,
)
from elmo_tasks.modules.decoding import best_tags, bio_scores
from elmo_tasks.text.tags import tags_to_spans

__all__ = ["SemanticRoleLabeler"]


@Model.register("elmo_srl")
class SemanticRoleLabeler(ElmoModel):
    """
    Semantic roles as in the paper (section A.5, after He et al. 2017): the embedded words, each
    with a vector that marks the predicate, go through highway LSTMs that alternate in direction,
    and a linear layer scores the BIO tags of arguments. Each tag is trained independently;
    evaluation finds the best tags that BIO allows. ELMo is concatenated with the words, with the
    output of the encoder, or with both. `verbose_metrics` adds the scores of each label to an
    evaluation. `label_weights`: see `weights_of`.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        encoder: Seq2SeqEncoder,
        predicate_dim: int = 100,
        verbose_metrics: bool = True,
        label_weights: Optional[dict[str, float]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.predicate_embedding = torch.nn.Embedding(2, predicate_dim)
        self.encoder = encoder
        self._tags = labels_of(vocab)
        width = self.width_with_elmo(encoder.get_output_dim())
        self.tag_projection = torch.nn.Linear(width, len(self._tags))
        self._rules = bio_scores(self._tags)
        self._label_weights: torch.Tensor | None
        weights = weights_of(self._tags, label_weights)
        self.register_buffer("_label_weights", weights, persistent=False)
        self._srl_f1 = SrlF1()
        self._verbose_metrics = verbose_metrics
        self.initialize()

    def forward(
        self,
        tokens: TextFieldTensors,
        verb_indicator: torch.Tensor,
        tags: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        Each row is one predicate with its sentence. `verb_indicator`, 1 at the predicate and 0
        elsewhere, and `tags` have shape `(batch_size, timesteps)`; `metadata` has the `words` and
        the `verb`. The output has `logits`, of shape `(batch_size, timesteps, n_tags)`; `mask`;
        `words` and `verb`, if there is metadata; the `loss` per word, if there are tags; and,
        except in training, `tag_ids`, the best tags of each sentence.
        """
        return self.decide(self.scores(tokens, verb_indicator, metadata), tags)

    def scores(
        self,
        tokens: TextFieldTensors,
        verb_indicator: torch.Tensor,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The output without tags and loss."""
        # Shape: (batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        # The predicates of a sentence share its embedded words, except in training, where each row
        # has its own dropout.
        sentences, rows = (tokens, slice(None)) if self.training else without_repetitions(tokens)
        # Shape: (batch_size, timesteps, dim)
        words = torch.cat(
            [self.text_field_embedder(sentences)[rows], self.predicate_embedding(verb_indicator)],
            -1,
        )
        # Shape: (batch_size, timesteps, n_tags)
        logits = self.tag_projection(self.with_elmo(self.encoder(words, mask), sentences, rows))
        output: dict[str, Any] = {"logits": logits, "mask": mask}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
            output["verb"] = [sentence["verb"] for sentence in metadata]
        return output

    def decide(self, output: dict[str, Any], tags: torch.Tensor | None = None) -> dict[str, Any]:
        """Adds the best tags for the logits, and the loss."""
        logits, mask = output["logits"], output["mask"]
        if tags is not None:
            loss = cross_entropy(
                logits[mask],
                tags[mask],
                weight=self._label_weights,
                reduction="sum",
            )
            output["loss"] = loss / mask.sum()
        if not self.training:
            output["tag_ids"] = best_tags(logits, mask, self._rules)
            if tags is not None:
                gold = ids_of_words(tags, mask)
                self._srl_f1(names_of(self._tags, output["tag_ids"]), names_of(self._tags, gold))
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `words`; `verb`; `tags` in the BIO scheme, and their `probabilities`; and a `description`,
        the sentence with its arguments in brackets: `[ARG0: Anna] [V: eats] [ARG1: an apple] .`
        """
        tags = names_of(self._tags, output_dict["tag_ids"])
        # Shape of each: (timesteps, n_tags)
        of_tags = zip(output_dict["logits"].softmax(-1), output_dict["tag_ids"], strict=True)
        return {
            "words": output_dict["words"],
            "verb": output_dict["verb"],
            "tags": tags,
            "probabilities": [row[torch.arange(len(ids)), ids].tolist() for row, ids in of_tags],
            "description": [
                _description(*pair) for pair in zip(output_dict["words"], tags, strict=True)
            ],
        }

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """
        See `SrlF1`; there are none in training. The scores of each label belong to a whole
        evaluation.
        """
        return (
            {}
            if self.training
            else self._srl_f1.get_metric(reset, verbose=self._verbose_metrics and reset)
        )

    default_predictor = "elmo_srl"


def _description(words: list[str], tags: list[str]) -> str:
    parts, end = [], 0
    for label, first, last in tags_to_spans(tags):
        parts += [*words[end:first], f"[{label}: {' '.join(words[first : last + 1])}]"]
        end = last + 1
    return " ".join([*parts, *words[end:]])
