"""The model for entailment between two sentences."""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, InputVariationalDropout, Seq2SeqEncoder
from allennlp.nn.util import get_text_field_mask, masked_max, masked_mean

from elmo_tasks.models.labels import readable_labels
from elmo_tasks.models.text_batches import concat_texts
from elmo_tasks.models.text_classifier import TextClassifier
from elmo_tasks.modules.attention import attend_in_blocks, softmax_over_words
from elmo_tasks.modules.dropout import Dropout

__all__ = ["Esim"]

# The largest number of weights that a prediction shows: for each word of a sentence, one per word
# of the other.
_MAX_SHOWN = 2**20


@Model.register("elmo_snli")
class Esim(TextClassifier):
    """
    ESIM (Chen et al. 2017) as in the paper (section A.3): an encoder reads both sentences, each
    word attends to the words of the other sentence, a second encoder reads the result, and a
    feedforward network decides from the maximum and the mean over the words. ELMo is concatenated
    with the words, with the output of the first encoder, before the attention, or with both. The
    two sentences of all pairs form one batch.

    # Parameters

    projection_feedforward : `FeedForward`
        From four times the width of the encoder's output, including ELMo, to the second encoder's
        input.
    output_feedforward : `FeedForward`
        From four times the width of the second encoder to the input of the last layer, which is
        linear.
    dropout : `float`
        Applied to the input of each encoder, with the same units at all words of a sentence; and to
        the input of the last two fully connected layers.
    attention_dropout : `float`
        Applied to the output of the attention; the paper uses 0.5 with ELMo.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        encoder: Seq2SeqEncoder,
        projection_feedforward: FeedForward,
        inference_encoder: Seq2SeqEncoder,
        output_feedforward: FeedForward,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, **kwargs)
        self.encoder = encoder
        self.projection_feedforward = projection_feedforward
        self.inference_encoder = inference_encoder
        self.output_feedforward = output_feedforward
        self.label_projection = torch.nn.Linear(
            output_feedforward.get_output_dim(), len(self._labels)
        )
        self.variational_dropout = InputVariationalDropout(dropout)
        self.dropout = torch.nn.Dropout(dropout)
        self.attention_dropout = Dropout(attention_dropout)
        self.initialize()

    def forward(
        self,
        premise: TextFieldTensors,
        hypothesis: TextFieldTensors,
        label: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """
        `label` has shape `(batch_size,)`; `metadata` has the `premise_tokens` and
        `hypothesis_tokens` of each pair. The output has `logits`, of shape
        `(batch_size, n_labels)`; `encoded_premise` and `encoded_hypothesis`, the words before the
        attention, of shape `(batch_size, timesteps, encoder_dim)`; the `metadata`; and the `loss`,
        if there are labels.
        """
        return self.decide(self.scores(premise, hypothesis, metadata), label)

    def scores(
        self,
        premise: TextFieldTensors,
        hypothesis: TextFieldTensors,
        metadata: list[dict[str, Any]] | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The output without the loss."""
        # Until the pooling, the batch has twice as many rows as pairs: first all premises, then all
        # hypotheses.
        tokens = concat_texts(premise, hypothesis)
        # Shape: (2 * batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        # Shape: (2 * batch_size, timesteps, embedded_dim)
        embedded = self.variational_dropout(self.text_field_embedder(tokens))
        # Shape: (2 * batch_size, timesteps, encoder_dim)
        encoded = self.with_elmo(self.encoder(embedded, mask), tokens)

        def attend(words: torch.Tensor, _: int) -> torch.Tensor:
            scores = words @ _other(encoded).transpose(1, 2)
            return softmax_over_words(scores, _other(mask)) @ _other(encoded)

        # Each word attends to the words of the other sentence. Shape: (2 * batch_size, timesteps,
        # encoder_dim)
        attended = attend_in_blocks(attend, encoded)
        # Shape: (2 * batch_size, timesteps, 4 * encoder_dim)
        enhanced = torch.cat([encoded, attended, encoded - attended, encoded * attended], -1)

        # Shape: (2 * batch_size, timesteps, projection_dim)
        projected = self.projection_feedforward(self.attention_dropout(enhanced))
        # Shape: (2 * batch_size, timesteps, inference_dim)
        inferred = self.inference_encoder(self.variational_dropout(projected), mask)

        has_word = mask.unsqueeze(-1)
        # Shape: (2 * batch_size, inference_dim) each
        mean = masked_mean(inferred, has_word, 1)
        maximum = masked_max(inferred, has_word, 1)
        # Shape: (2 * batch_size, 2 * inference_dim)
        pooled = torch.cat([mean, maximum], -1)
        # The premise next to the hypothesis. Shape: (batch_size, 4 * inference_dim)
        pairs = torch.cat(pooled.chunk(2), -1)
        decision = self.output_feedforward(self.dropout(pairs))
        # Shape: (batch_size, n_labels)
        logits = self.label_projection(self.dropout(decision))

        output: dict[str, Any] = {"logits": logits}
        output["encoded_premise"], output["encoded_hypothesis"] = encoded.chunk(2)
        if metadata is not None:
            output["metadata"] = metadata
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        `label`; the `probabilities` of all labels; `premise_tokens` and `hypothesis_tokens`; and
        `attention`: for the premise and for the hypothesis, one row per word with its weights for
        the words of the other sentence, or `None` for a pair of long texts.
        """
        readable = readable_labels(output_dict["logits"], self._labels)
        for name in ("premise_tokens", "hypothesis_tokens"):
            readable[name] = [pair[name] for pair in output_dict["metadata"]]
        attention = []
        for pair, premise, hypothesis in zip(
            output_dict["metadata"],
            output_dict["encoded_premise"],
            output_dict["encoded_hypothesis"],
            strict=True,
        ):
            # Without padding.
            premise = premise[: len(pair["premise_tokens"])]
            hypothesis = hypothesis[: len(pair["hypothesis_tokens"])]
            attention.append(_attention(premise, hypothesis))
        readable["attention"] = attention
        return readable

    default_predictor = "elmo_snli"


def _attention(
    premise: torch.Tensor, hypothesis: torch.Tensor
) -> dict[str, list[list[float]]] | None:
    """
    How much each word (row) attends to each word of the other sentence, of two sentences without
    padding.
    """
    if len(premise) * len(hypothesis) > _MAX_SHOWN:
        return None
    scores = premise @ hypothesis.t()
    return {"premise": scores.softmax(1).tolist(), "hypothesis": scores.t().softmax(1).tolist()}


def _other(sentences: torch.Tensor) -> torch.Tensor:
    """
    The hypothesis of each premise, and the premise of each hypothesis: shape
    `(2 * batch_size, ...)`.
    """
    return sentences.roll(len(sentences) // 2, 0)
