"""The model for sentiment."""

from typing import Any, Optional

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask, masked_max, masked_mean
from allennlp.training.metrics import CategoricalAccuracy
from torch.nn.functional import cross_entropy

from elmo_tasks.metrics import TagF1
from elmo_tasks.models.elmo_model import ElmoModel
from elmo_tasks.models.labels import labels_of, labels_of_ids, readable_labels, weights_of
from elmo_tasks.modules.attention import attend_in_blocks, softmax_over_words
from elmo_tasks.modules.dropout import Dropout

__all__ = ["BiattentiveClassifier"]


@Model.register("elmo_sst")
class BiattentiveClassifier(ElmoModel):
    """
    The biattentive classification network (BCN) of McCann et al. (2017) for one text, as in the
    paper (section A.8): a feedforward network and an encoder read the words, each word attends to
    all words of its text, a second encoder integrates the result, and ReLU layers (maxout in McCann
    et al.) decide from four poolings of the words. ELMo is concatenated with the words, with the
    output of the first encoder (of the second in AllenNLP's `bcn`), or with both.

    # Parameters

    pre_encode_feedforward : `FeedForward`
        Between the words and the first encoder.
    integrator : `Seq2SeqEncoder`
        The second encoder; its input is three times as wide as the first encoder's output,
        including ELMo.
    output_feedforward : `FeedForward`
        From four times the width of the integrator to the input of the last layer, which is linear.
    embedding_dropout, integrator_dropout : `float`
        Applied to the words, and to the poolings.
    label_weights : `Dict[str, float]`, optional
        See `weights_of`.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        pre_encode_feedforward: FeedForward,
        encoder: Seq2SeqEncoder,
        integrator: Seq2SeqEncoder,
        output_feedforward: FeedForward,
        embedding_dropout: float = 0.5,
        integrator_dropout: float = 0.1,
        label_weights: Optional[dict[str, float]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.pre_encode_feedforward = pre_encode_feedforward
        self.encoder = encoder
        self.integrator = integrator
        self.self_attention = torch.nn.Linear(integrator.get_output_dim(), 1)
        self.output_feedforward = output_feedforward
        self._labels = labels_of(vocab)
        self.label_projection = torch.nn.Linear(
            output_feedforward.get_output_dim(), len(self._labels)
        )
        self.embedding_dropout = Dropout(embedding_dropout)
        self.integrator_dropout = torch.nn.Dropout(integrator_dropout)
        self._label_weights: torch.Tensor | None
        weights = weights_of(self._labels, label_weights)
        self.register_buffer("_label_weights", weights, persistent=False)
        self._accuracy = CategoricalAccuracy()
        self._label_f1 = TagF1()
        self.initialize()

    def forward(
        self,
        tokens: TextFieldTensors,
        label: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        `label` has shape `(batch_size,)`; `metadata` has the `words` of each sentence. The output
        has `logits`, of shape `(batch_size, n_labels)`; the `words`, if there is metadata; and the
        `loss`, if there are labels.
        """
        return self.decide(self.scores(tokens, metadata), label)

    def scores(
        self,
        tokens: TextFieldTensors,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The output without the loss."""
        # Shape: (batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        embedded = self.embedding_dropout(self.text_field_embedder(tokens))
        projected = self.pre_encode_feedforward(embedded)
        # Shape: (batch_size, timesteps, encoder_dim)
        encoded = self.with_elmo(self.encoder(projected, mask), tokens)

        def attend(words: torch.Tensor, _: int) -> torch.Tensor:
            return softmax_over_words(words @ encoded.transpose(1, 2), mask) @ encoded

        # The text attends to itself, so both sides of the biattention are the same.
        # Shape: (batch_size, timesteps, encoder_dim)
        attended = attend_in_blocks(attend, encoded)
        # Shape: (batch_size, timesteps, 3 * encoder_dim)
        enhanced = torch.cat([encoded, encoded - attended, encoded * attended], -1)
        # Shape: (batch_size, timesteps, integrator_dim)
        integrated = self.integrator(enhanced, mask)

        pooled = self.integrator_dropout(self._pool(integrated, mask))
        logits = self.label_projection(self.output_feedforward(pooled))
        output: dict[str, Any] = {"logits": logits}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
        return output

    def decide(self, output: dict[str, Any], label: torch.Tensor | None = None) -> dict[str, Any]:
        """Adds the loss."""
        if label is not None:
            logits = output["logits"]
            output["loss"] = cross_entropy(logits, label, weight=self._label_weights)
            self._accuracy(logits, label)
            if not self.training:
                # The texts of the batch count as the words of one sentence.
                predicted = labels_of_ids(self._labels, [logits.argmax(-1).tolist()])
                gold = labels_of_ids(self._labels, [label.tolist()])
                self._label_f1(predicted, gold)
        return output

    def _pool(self, integrated: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        Maximum, minimum, mean, and a weighted mean of the words: shape
        `(batch_size, 4 * integrator_dim)`.
        """
        has_word = mask.unsqueeze(-1)
        # Shape: (batch_size, 1, timesteps)
        weights = softmax_over_words(self.self_attention(integrated).transpose(1, 2), mask)
        poolings = [
            masked_max(integrated, has_word, 1),
            -masked_max(-integrated, has_word, 1),
            masked_mean(integrated, has_word, 1),
            (weights @ integrated).squeeze(1),
        ]
        return torch.cat(poolings, -1)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """`words`, `label`, and the `probabilities` of all labels."""
        return {
            "words": output_dict["words"],
            **readable_labels(output_dict["logits"], self._labels),
        }

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`accuracy`; in an evaluation, also `macro_f1`, the mean F1 of the labels."""
        metrics = {"accuracy": self._accuracy.get_metric(reset)}
        if not self.training:
            metrics |= self._label_f1.get_metric(reset)
        return metrics

    default_predictor = "elmo_sst"
