"""The model for semantic roles."""

from typing import Any, Optional

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask
from torch.nn.functional import cross_entropy

from elmo_tasks.metrics import SrlF1
from elmo_tasks.models.elmo_model import ElmoModel
from elmo_tasks.models.labels import ids_of_words, labels_of, labels_of_ids, weights_of
from elmo_tasks.models.text_batches import without_repetitions
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
        sentences = tokens
        rows: torch.Tensor | slice = slice(None)
        if not self.training:
            # The predicates of a sentence share its embedded words; in training, each row has its
            # own dropout.
            sentences, rows = without_repetitions(tokens)
        # Shape: (batch_size, timesteps, embedded_dim)
        embedded = self.text_field_embedder(sentences)[rows]
        # Shape: (batch_size, timesteps, predicate_dim)
        predicate = self.predicate_embedding(verb_indicator)
        # Shape: (batch_size, timesteps, encoder_dim)
        encoded = self.encoder(torch.cat([embedded, predicate], -1), mask)
        # Shape: (batch_size, timesteps, n_tags)
        logits = self.tag_projection(self.with_elmo(encoded, sentences, rows))
        output: dict[str, Any] = {"logits": logits, "mask": mask}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
            output["verb"] = [sentence["verb"] for sentence in metadata]
        return output

    def decide(self, output: dict[str, Any], tags: torch.Tensor | None = None) -> dict[str, Any]:
        """Adds the best tags for the logits, and the loss."""
        logits, mask = output["logits"], output["mask"]
        if tags is not None:
            weights = self._label_weights
            loss = cross_entropy(logits[mask], tags[mask], weight=weights, reduction="sum")
            output["loss"] = loss / mask.sum()
        if not self.training:
            tag_ids = best_tags(logits, mask, self._rules)
            output["tag_ids"] = tag_ids
            if tags is not None:
                gold = ids_of_words(tags, mask)
                self._srl_f1(labels_of_ids(self._tags, tag_ids), labels_of_ids(self._tags, gold))
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `words`; `verb`; `tags` in the BIO scheme, and their `probabilities`; and a `description`,
        the sentence with its arguments in brackets: `[ARG0: Anna] [V: eats] [ARG1: an apple] .`
        """
        tag_ids = output_dict["tag_ids"]
        tags = labels_of_ids(self._tags, tag_ids)
        probabilities = []
        # Shape of each row: (timesteps, n_tags)
        for row, ids in zip(output_dict["logits"].softmax(-1), tag_ids, strict=True):
            probabilities.append(row[torch.arange(len(ids)), ids].tolist())
        descriptions = []
        for words, sentence_tags in zip(output_dict["words"], tags, strict=True):
            descriptions.append(_description(words, sentence_tags))
        return {
            "words": output_dict["words"],
            "verb": output_dict["verb"],
            "tags": tags,
            "probabilities": probabilities,
            "description": descriptions,
        }

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """
        See `SrlF1`; there are none in training. The scores of each label belong to a whole
        evaluation.
        """
        if self.training:
            return {}
        return self._srl_f1.get_metric(reset, verbose=self._verbose_metrics and reset)

    default_predictor = "elmo_srl"


def _description(words: list[str], tags: list[str]) -> str:
    """The sentence with its arguments in brackets."""
    described = []
    end = 0
    for label, first, last in tags_to_spans(tags):
        argument = " ".join(words[first : last + 1])
        described += words[end:first]
        described.append(f"[{label}: {argument}]")
        end = last + 1
    described += words[end:]
    return " ".join(described)
