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
        self.heads, self.tails = torch.nn.Linear(width, hidden), torch.nn.Linear(width, hidden)
        # The first label is no relation.
        self.scores = torch.nn.Parameter(
            torch.randn(len(self._labels) + 1, hidden, hidden) / hidden
        )

    def forward(
        self,
        tokens: TextFieldTensors,
        relations: torch.Tensor | None = None,
        metadata: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        words = self.text_field_embedder(tokens)
        mask = get_text_field_mask(tokens)
        # Shape: (batch_size, n_words, n_words, n_labels + 1)
        logits = torch.einsum(
            "bih,lhk,bjk->bijl", self.heads(words).relu(), self.scores, self.tails(words).relu()
        )
        output: dict[str, Any] = {"probabilities": logits.softmax(-1), "metadata": metadata}
        if relations is not None:
            pairs = mask.unsqueeze(1) & mask.unsqueeze(2)
            # In `relations`, -1 is no relation.
            output["loss"] = torch.nn.functional.cross_entropy(
                logits[pairs], relations[pairs].long() + 1
            )
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        words = [each["words"] for each in output_dict["metadata"]]
        found = [
            self._found(each, table)
            for each, table in zip(words, output_dict["probabilities"], strict=True)
        ]
        return {"words": words, "relations": found}

    def _found(self, words: list[str], probabilities: torch.Tensor) -> list[dict[str, Any]]:
        found = []
        best, labels = probabilities[: len(words), : len(words)].max(-1)
        for head, tail in labels.nonzero().tolist():
            label, probability = self._labels[labels[head, tail] - 1], float(best[head, tail])
            names = {"head": _name_that_ends(words, head), "tail": _name_that_ends(words, tail)}
            found.append({"label": label, **names, "probability": probability})
        return found


def _name_that_ends(words: list[str], last: int) -> list[int]:
    """The first and the last word of a name: it has capital letters."""
    first = last
    while first > 0 and words[first - 1][0].isupper():
        first -= 1
    return [first, last]
