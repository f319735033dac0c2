"""The model for parts of speech."""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.models.simple_tagger import SimpleTagger
from allennlp.modules import Seq2SeqEncoder, TextFieldEmbedder
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.metrics import TagF1
from elmo_tasks.models.elmo_model import ids_of_words, labels_of, names_of, warn_of_unknown_words

__all__ = ["PosClassifier"]


@Model.register("elmo_pos")
class PosClassifier(SimpleTagger):
    """
    A linear classifier of the words on top of an encoder; the paper's Table 6 (section 5.3) uses a layer of the biLM
    instead of an encoder. It is AllenNLP's `SimpleTagger`, without its two rows of numbers per word in a prediction,
    and with the scores of each tag in an evaluation (`verbose_metrics`).
    """

    def __init__(
        self,
        vocab: Vocabulary,
        text_field_embedder: TextFieldEmbedder,
        encoder: Seq2SeqEncoder,
        verbose_metrics: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, text_field_embedder, encoder, verbose_metrics=verbose_metrics, **kwargs)
        self._tags = labels_of(vocab)
        self._tag_f1 = TagF1()
        warn_of_unknown_words(vocab, text_field_embedder)

    def forward(
        self,
        tokens: TextFieldTensors,
        tags: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
        ignore_loss_on_o_tags: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """See `SimpleTagger`; as in our other models, fields of other readers are ignored."""
        output: dict[str, Any] = super().forward(tokens, tags, metadata, ignore_loss_on_o_tags)
        if tags is not None and not self.training:
            mask = get_text_field_mask(tokens)
            rows = (ids_of_words(ids, mask) for ids in (output["logits"].argmax(-1), tags))
            self._tag_f1(*(names_of(self._tags, ids) for ids in rows))
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """`words`, their `tags`, and the `probabilities` of the tags."""
        readable = super().make_output_human_readable(output_dict)
        words, probabilities = readable["words"], readable["class_probabilities"].max(-1).values.tolist()
        # AllenNLP also tags padding.
        return {"words": words} | {
            name: [row[: len(sentence)] for row, sentence in zip(rows, words, strict=True)]
            for name, rows in (("tags", readable["tags"]), ("probabilities", probabilities))
        }

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """`accuracy` and `accuracy3` (of the best three tags); of a whole evaluation, the scores of each tag."""
        is_whole = reset and not self.training
        return super().get_metrics(reset) | self._tag_f1.get_metric(reset, verbose=self._verbose_metrics and is_whole)

    default_predictor = "elmo_pos"
