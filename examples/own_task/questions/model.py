"""The maximum over the words of a sentence, and a linear layer. The predictor describes the task."""

from typing import Any

import torch
from allennlp.data import TextFieldTensors, Vocabulary
from allennlp.models import Model
from allennlp.nn.util import get_text_field_mask, masked_max
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy

from elmo_tasks.kinds import Label
from elmo_tasks.models.elmo_model import ElmoModel, labels_of, readable_labels
from elmo_tasks.predictors import SentencePredictor


@Model.register("questions")
class QuestionModel(ElmoModel):
    default_predictor = "questions"

    def __init__(self, vocab: Vocabulary, **kwargs: Any) -> None:
        super().__init__(vocab, **kwargs)
        self._labels = labels_of(vocab)
        self.label_projection = torch.nn.Linear(self.text_field_embedder.get_output_dim(), len(self._labels))
        self._accuracy = CategoricalAccuracy()

    def forward(
        self, tokens: TextFieldTensors, label: torch.Tensor | None = None, metadata: list[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        has_word = get_text_field_mask(tokens).unsqueeze(-1)
        # Shape: (batch_size, n_labels)
        logits = self.label_projection(masked_max(self.text_field_embedder(tokens), has_word, 1))
        output: dict[str, Any] = {"logits": logits, "metadata": metadata}
        if label is not None:
            output["loss"] = torch.nn.functional.cross_entropy(logits, label)
            self._accuracy(logits, label)
        return output

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        words = [each["words"] for each in output_dict["metadata"]]
        return {"words": words, **readable_labels(output_dict["logits"], self._labels)}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        return {"accuracy": self._accuracy.get_metric(reset)}


@Predictor.register("questions")
class QuestionPredictor(SentencePredictor):
    title = "Is it a question?"
    about = "Whether a sentence is a question: the probabilities of `yes` and `no`."
    examples = (("Who sang in Rome?",), ("She sang in Rome.",))
    kind = Label
