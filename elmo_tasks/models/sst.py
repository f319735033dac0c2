"""The model of sentiment."""

from typing import Any, Optional

import torch
from allennlp.common import Lazy
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.modules import FeedForward, Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator
from allennlp.nn.util import get_text_field_mask, masked_max, masked_mean
from allennlp.training.metrics import CategoricalAccuracy

from elmo_tasks.models.classification import FixedLabels, check_widths, labels_of, readable_labels, softmax_over_words
from elmo_tasks.modules import ContextualModel, concat_dim, concat_embedding, construct_embedders, initialize

__all__ = ["BiattentiveClassifier"]


@Model.register("elmo_sst")
class BiattentiveClassifier(FixedLabels):
    """
    The biattentive classification network (BCN) of McCann et al. (2017) for one text, as in the paper (section A.8):
    a feedforward network and an encoder read the words, each word attends to all words of its text, a second encoder
    integrates the result, and layers of ReLU (McCann et al. have maxout) decide from four poolings of the words. ELMo
    is concatenated with the words, with the output of the first encoder, or with both; the two places mix the layers of
    one biLM, which runs once a batch.

    Registered as a `Model` with name "elmo_sst".

    # Parameters

    vocab : `Vocabulary`
        With the labels in the namespace `labels`.
    text_field_embedder : `Lazy[TextFieldEmbedder]`
        The words. Its `elmo` embedders take the `bilm` below.
    pre_encode_feedforward : `FeedForward`
        Between the words and the first encoder.
    encoder : `Seq2SeqEncoder`
        The first encoder.
    integrator : `Seq2SeqEncoder`
        The second encoder, for three times the width of the first, with ELMo if it is there.
    output_feedforward : `FeedForward`
        From four times the width of the integrator to the input of the last layer, which is linear.
    bilm : `ContextualModel`, optional
        The biLM, or a transformer in its place; required if an embedder is ELMo's.
    output_embedder : `Lazy[TextFieldEmbedder]`, optional
        Concatenated with the output of the first encoder.
    embedding_dropout : `float`
        Of the words.
    integrator_dropout : `float`
        Of the poolings.
    initializer : `InitializerApplicator`, optional
        See `Model`.

    # Raises

    `ConfigurationError`
        If the widths of two parts do not match.
    """

    # AllenNLP's `bcn` has ELMo at the output of the integrator; the paper at that of the encoder below.

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: Lazy[TextFieldEmbedder],
        pre_encode_feedforward: FeedForward,
        encoder: Seq2SeqEncoder,
        integrator: Seq2SeqEncoder,
        output_feedforward: FeedForward,
        bilm: Optional[ContextualModel] = None,
        output_embedder: Optional[Lazy[TextFieldEmbedder]] = None,
        embedding_dropout: float = 0.5,
        integrator_dropout: float = 0.1,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        # By name, from the config: `regularizer` and whatever else `Model` takes.
        super().__init__(vocab, **kwargs)
        self.text_field_embedder, self.output_embedder = construct_embedders(text_field_embedder, output_embedder, bilm)
        self.pre_encode_feedforward = pre_encode_feedforward
        self.encoder = encoder
        self.integrator = integrator
        self.self_attention = torch.nn.Linear(integrator.get_output_dim(), 1)
        self.output_feedforward = output_feedforward
        self._labels = labels_of(vocab)
        self.n_labels = len(self._labels)
        self.label_projection = torch.nn.Linear(output_feedforward.get_output_dim(), self.n_labels)
        self.embedding_dropout = torch.nn.Dropout(embedding_dropout)
        self.integrator_dropout = torch.nn.Dropout(integrator_dropout)

        width = concat_dim(encoder.get_output_dim(), self.output_embedder)
        embedded = self.text_field_embedder.get_output_dim()
        check_widths(
            ("the embedded words", embedded, "pre_encode_feedforward", pre_encode_feedforward),
            ("the words before the encoder", pre_encode_feedforward.get_output_dim(), "encoder", encoder),
            ("three times the encoded words", 3 * width, "integrator", integrator),
            ("the poolings", 4 * integrator.get_output_dim(), "output_feedforward", output_feedforward),
        )

        self._accuracy = CategoricalAccuracy()
        initialize(self, initializer)

    def forward(
        self,
        tokens: TextFieldTensors,
        label: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """
        # Parameters

        tokens : `TextFieldTensors`
            The sentences.
        label : `torch.LongTensor`, optional
            Shape `(batch_size,)`.
        metadata : `List[Dict[str, Any]]`, optional
            With the `words` of each sentence.

        # Returns

        `Dict[str, Any]`
            `logits`, of shape `(batch_size, n_labels)`; the `words`, if there is metadata; and the `loss`, if there are
            labels.
        """
        # Shape: (batch_size, timesteps)
        mask = get_text_field_mask(tokens)
        embedded = self.embedding_dropout(self.text_field_embedder(tokens))
        # Shape: (batch_size, timesteps, encoder_dim)
        encoded = self.encoder(self.pre_encode_feedforward(embedded), mask)
        encoded = concat_embedding(encoded, self.output_embedder, tokens)

        # The text attends to itself: the two sides of the biattention are one.
        # Shape: (batch_size, timesteps, timesteps)
        attention = softmax_over_words(encoded @ encoded.transpose(1, 2), mask)
        attended = attention @ encoded
        # Shape: (batch_size, timesteps, integrator_dim)
        integrated = self.integrator(torch.cat([encoded, encoded - attended, encoded * attended], -1), mask)

        logits = self.label_projection(self.output_feedforward(self.integrator_dropout(self._pool(integrated, mask))))
        output: dict[str, Any] = {"logits": logits}
        if metadata is not None:
            output["words"] = [sentence["words"] for sentence in metadata]
        if label is not None:
            output["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self._accuracy(logits, label)
        return output

    def _pool(self, integrated: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Maximum, minimum, mean, and a weighted mean of the words: shape `(batch_size, 4 * integrator_dim)`."""
        has_word = mask.unsqueeze(-1)
        # Shape: (batch_size, 1, timesteps)
        weights = softmax_over_words(self.self_attention(integrated).transpose(1, 2), mask)
        poolings = [
            masked_max(integrated, has_word, 1),
            -masked_max(-integrated, has_word, 1),
            # AllenNLP's is in single precision at least.
            masked_mean(integrated, has_word, 1).to(integrated.dtype),
            (weights @ integrated).squeeze(1),
        ]
        return torch.cat(poolings, -1)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            `words`, `label`, and `probabilities`, of each label.
        """
        return {"words": output_dict["words"], **readable_labels(output_dict["logits"], self._labels)}

    def prediction_without_words(self) -> dict[str, Any]:
        """The prediction for a text without words, which has no sentiment: the keys of `make_output_human_readable`."""
        return {"words": [], "label": None, "probabilities": {}}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`accuracy`."""
        return {"accuracy": self._accuracy.get_metric(reset)}

    default_predictor = "elmo_sentence"
