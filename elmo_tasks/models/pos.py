"""The model of parts of speech."""

from typing import Any, Optional

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.models.simple_tagger import SimpleTagger
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator

from elmo_tasks.models.classification import FixedLabels, labels_of
from elmo_tasks.modules import initialize

__all__ = ["PosClassifier"]


@Model.register("elmo_pos")
class PosClassifier(SimpleTagger, FixedLabels):
    """
    A linear classifier of the words over an encoder; the paper's Table 6 (section 5.3) has no encoder, but a layer of
    the biLM. It is AllenNLP's `SimpleTagger`, whose parameters it takes, with a default predictor that knows its reader
    and without the two rows of numbers a word in a prediction.

    Registered as a `Model` with name "elmo_pos".

    # Raises

    `ConfigurationError`
        If the vocabulary has no tags.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        label_namespace: str = "labels",
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        labels_of(vocab, label_namespace)
        # By name, from the config: whatever else `SimpleTagger` takes.
        super().__init__(vocab, text_field_embedder, encoder, label_namespace=label_namespace, **kwargs)
        self.n_labels = self.num_classes
        initialize(self, initializer)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """
        # Returns

        `Dict[str, Any]`
            `words` and their `tags`.
        """
        # NumPy has no bfloat16.
        for name in ("logits", "class_probabilities"):
            if output_dict[name].dtype is torch.bfloat16:
                output_dict[name] = output_dict[name].float()
        readable = super().make_output_human_readable(output_dict)
        # AllenNLP gives padding tags too.
        pairs = zip(readable["words"], readable["tags"], strict=True)
        return {"words": readable["words"], "tags": [tags[: len(words)] for words, tags in pairs]}

    def prediction_without_words(self) -> dict[str, Any]:
        """The prediction for a sentence without words, with the keys of `make_output_human_readable`."""
        return {"words": [], "tags": []}

    default_predictor = "elmo_sentence"
