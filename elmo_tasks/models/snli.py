"""The model of entailment between two sentences."""

from typing import Any, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, InputVariationalDropout, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import get_text_field_mask, masked_max, masked_mean
from allennlp.training.metrics import CategoricalAccuracy

from elmo_tasks.models.classification import FixedLabels, check_widths, labels_of, readable_labels, softmax_over_words
from elmo_tasks.modules import (
    ContextualModel,
    concat_dim,
    concat_embedding,
    concat_texts,
    construct_embedders,
    initialize,
)

__all__ = ["Esim"]


@Model.register("elmo_snli")
class Esim(FixedLabels):
    """
    ESIM (Chen et al. 2017) as in the paper (section A.3): an encoder reads both sentences, each word attends to the
    words of the other sentence, a second encoder reads the result, and a feedforward network decides from the maximum
    and the mean over the words. ELMo is concatenated with the words, with the output of the first encoder, before the
    attention, or with both; the two places mix the layers of one biLM. It runs once a batch: the two sentences of all
    pairs are one batch of sentences.

    Registered as a `Model` with name "elmo_snli".

    # Parameters

    vocab : `Vocabulary`
        With the labels in the namespace `labels`.
    text_field_embedder : `Lazy[TextFieldEmbedder]`
        The input of the first encoder. Its `elmo` embedders take the `bilm` below.
    encoder : `Seq2SeqEncoder`
        The first encoder.
    projection_feedforward : `FeedForward`
        From four times the width of the encoder's output, with ELMo if it is there, to the second encoder's input.
    inference_encoder : `Seq2SeqEncoder`
        The second encoder.
    output_feedforward : `FeedForward`
        From eight times the units of one direction of the second encoder, that is four times its width, to the input of
        the last layer, which is linear.
    bilm : `ContextualModel`, optional
        The biLM, or a transformer in its place; required if an embedder is ELMo's.
    output_embedder : `Lazy[TextFieldEmbedder]`, optional
        Concatenated with the output of the first encoder.
    dropout : `float`
        Of the input of each encoder, the same units at all words of a sentence; and of the input of the last two fully
        connected layers.
    attention_dropout : `float`
        Of the output of the attention; the paper has 0.5 with ELMo.
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
        encoder: Seq2SeqEncoder,
        projection_feedforward: FeedForward,
        inference_encoder: Seq2SeqEncoder,
        output_feedforward: FeedForward,
        bilm: Optional[ContextualModel] = None,
        output_embedder: Optional[Lazy[TextFieldEmbedder]] = None,
        dropout: float = 0.5,
        attention_dropout: float = 0.0,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        # By name, from the config: `regularizer` and whatever else `Model` takes.
        super().__init__(vocab, **kwargs)
        self.text_field_embedder, self.output_embedder = construct_embedders(text_field_embedder, output_embedder, bilm)
        self.encoder = encoder
        self.projection_feedforward = projection_feedforward
        self.inference_encoder = inference_encoder
        self.output_feedforward = output_feedforward
        self._labels = labels_of(vocab)
        self.n_labels = len(self._labels)
        self.label_projection = torch.nn.Linear(output_feedforward.get_output_dim(), self.n_labels)
        self.variational_dropout = InputVariationalDropout(dropout)
        self.dropout = torch.nn.Dropout(dropout)
        self.attention_dropout = torch.nn.Dropout(attention_dropout)

        width = concat_dim(encoder.get_output_dim(), self.output_embedder)
        check_widths(
            ("the embedded words", self.text_field_embedder.get_output_dim(), "encoder", encoder),
            ("four times the encoded words", 4 * width, "projection_feedforward", projection_feedforward),
            ("the projection", projection_feedforward.get_output_dim(), "inference_encoder", inference_encoder),
            ("the pooled pair", 4 * inference_encoder.get_output_dim(), "output_feedforward", output_feedforward),
        )

        self._accuracy = CategoricalAccuracy()
        initialize(self, initializer)

    def forward(
        self,
        premise: TextFieldTensors,
        hypothesis: TextFieldTensors,
        label: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """
        # Parameters

        premise, hypothesis : `TextFieldTensors`
            The sentences.
        label : `torch.LongTensor`, optional
            Shape `(batch_size,)`.
        metadata : `List[Dict[str, Any]]`, optional
            With the `premise_tokens` and `hypothesis_tokens` of each pair.

        # Returns

        `Dict[str, Any]`
            `logits`, of shape `(batch_size, n_labels)`; `premise_attention` and `hypothesis_attention`, of shape
            `(batch_size, timesteps, timesteps)`: how much each word of the sentence (row) attends to each of the other;
            the `metadata`, if there is some; and the `loss`, if there are labels.
        """
        # From here to the pooling the pairs are twice as many sentences: first all premises, then all hypotheses.
        tokens = concat_texts(premise, hypothesis)
        # Shape: (2 * batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        # Shape: (2 * batch_size, timesteps, encoder_dim)
        encoded = self.encoder(self.variational_dropout(self.text_field_embedder(tokens)), mask)
        encoded = concat_embedding(encoded, self.output_embedder, tokens)

        # Shape: (2 * batch_size, timesteps, timesteps)
        attention = self._attention(encoded, mask)
        attended = attention @ _other(encoded)
        # Shape: (2 * batch_size, timesteps, 4 * encoder_dim)
        enhanced = torch.cat([encoded, attended, encoded - attended, encoded * attended], -1)

        # Shape: (2 * batch_size, timesteps, projection_dim)
        projected = self.projection_feedforward(self.attention_dropout(enhanced))
        # Shape: (2 * batch_size, timesteps, inference_dim)
        inferred = self.inference_encoder(self.variational_dropout(projected), mask)

        has_word = mask.unsqueeze(-1)
        # AllenNLP's mean is in single precision at least.
        mean = masked_mean(inferred, has_word, 1).to(inferred.dtype)
        pooled = torch.cat([mean, masked_max(inferred, has_word, 1)], -1)
        # Shape: (batch_size, 4 * inference_dim)
        pairs = torch.cat(pooled.chunk(2), -1)
        logits = self.label_projection(self.dropout(self.output_feedforward(self.dropout(pairs))))

        output: dict[str, Any] = {"logits": logits}
        output["premise_attention"], output["hypothesis_attention"] = attention.chunk(2)
        if metadata is not None:
            output["metadata"] = metadata
        if label is not None:
            output["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self._accuracy(logits, label)
        return output

    def _attention(self, encoded: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """How much each word attends to each of the other sentence: shape `(2 * batch_size, timesteps, timesteps)`."""
        similarity = encoded @ _other(encoded).transpose(1, 2)
        return softmax_over_words(similarity, _other(mask))

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            `label`; `probabilities`, of each label; `premise_tokens` and `hypothesis_tokens`; and `attention`: for the
            premise and for the hypothesis a row for each word, with its weights for the words of the other sentence.
        """
        readable = readable_labels(output_dict["logits"], self._labels)
        readable["attention"] = []
        for name in ("premise_tokens", "hypothesis_tokens"):
            readable[name] = [pair[name] for pair in output_dict["metadata"]]
        for row, pair in enumerate(output_dict["metadata"]):
            premise, hypothesis = len(pair["premise_tokens"]), len(pair["hypothesis_tokens"])
            readable["attention"].append(
                {
                    "premise": output_dict["premise_attention"][row, :premise, :hypothesis].tolist(),
                    "hypothesis": output_dict["hypothesis_attention"][row, :hypothesis, :premise].tolist(),
                }
            )
        return readable

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`accuracy`."""
        return {"accuracy": self._accuracy.get_metric(reset)}

    default_predictor = "elmo_snli"


def _other(sentences: torch.Tensor) -> torch.Tensor:
    """The hypothesis of each premise, and the premise of each hypothesis: shape `(2 * batch_size, ...)`."""
    return sentences.roll(len(sentences) // 2, 0)
