"""The model for sentiment."""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask, masked_max, masked_mean

from elmo_tasks.models.labels import readable_labels
from elmo_tasks.models.text_classifier import TextClassifier
from elmo_tasks.modules.attention import attend_in_blocks, softmax_over_words
from elmo_tasks.modules.dropout import Dropout

__all__ = ["BiattentiveClassifier"]


@Model.register("elmo_sst")
class BiattentiveClassifier(TextClassifier):
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
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.pre_encode_feedforward = pre_encode_feedforward
        self.encoder = encoder
        self.integrator = integrator
        self.self_attention = torch.nn.Linear(integrator.get_output_dim(), 1)
        self.output_feedforward = output_feedforward
        self.label_projection = torch.nn.Linear(
            output_feedforward.get_output_dim(), len(self._labels)
        )
        self.embedding_dropout = Dropout(embedding_dropout)
        self.integrator_dropout = torch.nn.Dropout(integrator_dropout)
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
        # Shape: (batch_size, timesteps, embedded_dim)
        embedded = self.embedding_dropout(self.text_field_embedder(tokens))
        # Shape: (batch_size, timesteps, feedforward_dim)
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

        # Shape: (batch_size, 4 * integrator_dim)
        pooled = self.integrator_dropout(self._pool(integrated, mask))
        # Shape: (batch_size, n_labels)
        logits = self.label_projection(self.output_feedforward(pooled))
        output: dict[str, Any] = {"logits": logits}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
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

    default_predictor = "elmo_sst"
