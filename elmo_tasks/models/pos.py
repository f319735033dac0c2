"""The model of parts of speech."""

from typing import Any, Optional

from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.models.simple_tagger import SimpleTagger
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn import InitializerApplicator

from elmo_tasks.models.elmo_model import initialize

__all__ = ["PosClassifier"]


@Model.register("elmo_pos")
class PosClassifier(SimpleTagger):
    """
    A linear classifier of the words over an encoder; the paper's Table 6 (section 5.3) has no encoder, but a layer of
    the biLM. It is AllenNLP's `SimpleTagger`, without its two rows of numbers per word in a prediction.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        initializer: Optional[InitializerApplicator] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, encoder, **kwargs)
        initialize(self, initializer)

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """`words`, their `tags`, and the `probabilities` of these."""
        readable = super().make_output_human_readable(output_dict)
        words, lengths = readable["words"], list(map(len, readable["words"]))
        # AllenNLP gives padding tags too.
        columns = {"tags": readable["tags"], "probabilities": readable["class_probabilities"].max(-1).values.tolist()}
        return {"words": words} | {
            name: [row[:length] for row, length in zip(rows, lengths, strict=True)] for name, rows in columns.items()
        }

    def prediction_without_words(self) -> dict[str, Any]:
        """The prediction for a sentence without words, with the keys of `make_output_human_readable`."""
        return {"words": [], "tags": [], "probabilities": []}

    default_predictor = "elmo_sentence"
