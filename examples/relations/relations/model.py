"""Scores each pair of words as the last words of two related names."""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.nn.util import get_text_field_mask

from elmo_tasks.models.elmo_model import ElmoModel, labels_of


@Model.register("relations")
class RelationModel(ElmoModel):
    default_predictor = "relations"

    def __init__(self, vocab: Vocabulary, hidden: int = 50, **kwargs: Any) -> None:
        super().__init__(vocab, **kwargs)
        self._labels = labels_of(vocab)
        width = self.text_field_embedder.get_output_dim()
        self.heads = torch.nn.Linear(width, hidden)
        self.tails = torch.nn.Linear(width, hidden)
        # The first label is no relation.
        scores = torch.randn(len(self._labels) + 1, hidden, hidden) / hidden
        self.scores = torch.nn.Parameter(scores)

    def forward(
        self,
        tokens: TextFieldTensors,
        relations: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        words = self.text_field_embedder(tokens)
        mask = get_text_field_mask(tokens)
        heads = self.heads(words).relu()
        tails = self.tails(words).relu()
        # Shape: (batch_size, n_words, n_words, n_labels + 1)
        logits = torch.einsum("bih,lhk,bjk->bijl", heads, self.scores, tails)
        output: dict[str, Any] = {"probabilities": logits.softmax(-1), "metadata": metadata}
        if relations is not None:
            pairs = mask.unsqueeze(1) & mask.unsqueeze(2)
            # In `relations`, -1 is no relation.
            labels = relations[pairs].long() + 1
            output["loss"] = torch.nn.functional.cross_entropy(logits[pairs], labels)
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        sentences = [metadata["words"] for metadata in output_dict["metadata"]]
        relations = []
        for words, probabilities in zip(sentences, output_dict["probabilities"], strict=True):
            relations.append(self._relations(words, probabilities))
        return {"words": sentences, "relations": relations}

    def _relations(self, words: list[str], probabilities: torch.Tensor) -> list[dict[str, Any]]:
        relations = []
        best, labels = probabilities[: len(words), : len(words)].max(-1)
        for head, tail in labels.nonzero().tolist():
            relation = {
                "label": self._labels[labels[head, tail] - 1],
                "head": _name_that_ends(words, head),
                "tail": _name_that_ends(words, tail),
                "probability": float(best[head, tail]),
            }
            relations.append(relation)
        return relations


def _name_that_ends(words: list[str], last: int) -> list[int]:
    """The first and the last word of a name: it has capital letters."""
    first = last
    while first > 0 and words[first - 1][0].isupper():
        first -= 1
    return [first, last]
