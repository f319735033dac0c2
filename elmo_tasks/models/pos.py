"""The model for parts of speech."""

from typing import Any

from allennlp.models import Model
from allennlp.models.simple_tagger import SimpleTagger

__all__ = ["PosClassifier"]


@Model.register("elmo_pos")
class PosClassifier(SimpleTagger):
    """
    A linear classifier of the words on top of an encoder; the paper's Table 6 (section 5.3) uses a layer of the biLM
    instead of an encoder. It is AllenNLP's `SimpleTagger`, without its two rows of numbers per word in a prediction.
    """

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """`words`, their `tags`, and the `probabilities` of the tags."""
        readable = super().make_output_human_readable(output_dict)
        words, probabilities = readable["words"], readable["class_probabilities"].max(-1).values.tolist()
        # AllenNLP also tags padding.
        return {"words": words} | {
            name: [row[: len(sentence)] for row, sentence in zip(rows, words, strict=True)]
            for name, rows in (("tags", readable["tags"]), ("probabilities", probabilities))
        }

    default_predictor = "elmo_pos"
