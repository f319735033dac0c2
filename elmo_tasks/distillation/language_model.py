"""A biLM that learns from a transformer's vectors as well as from the words of a text."""

from typing import Any

import torch
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.training.metrics import Average
from torch.nn.functional import batch_norm, layer_norm, mse_loss

from elmo_tasks.models import BilmLanguageModel
from elmo_tasks.modules import ContextualModel

__all__ = ["DistilledLanguageModel"]


@Model.register("elmo_distilled_bilm")
class DistilledLanguageModel(BilmLanguageModel):
    """
    A biLM that is trained as a language model and as the student of a frozen teacher. The loss is

        lm_weight * L + mean((W norm(h) + b - t) ** 2)

    with the loss `L` of the language model and, for each word, the mean `h` of the biLM's layers, normalised, and the
    mean `t` of some of the teacher's layers, with each dimension standardised by its mean and variance so far. The map
    `W`, `b` is trained from zero. `allennlp elmo-export` writes only the biLM.

    # Parameters

    teacher : `ContextualModel`
        Such as "transformer". The reader `elmo_lm` has its token indexer as `teacher`.
    teacher_layers : `List[int]`
        The layers of the teacher to learn, counted from the embeddings, layer 0.
    lm_weight : `float`
        The weight of the language model's loss, in nats per prediction. The others are those of `BilmLanguageModel`.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        options: dict[str, Any],
        teacher: ContextualModel,
        teacher_layers: list[int],
        lm_weight: float,
        **kwargs: Any,
    ) -> None:
        super().__init__(vocab, options, **kwargs)
        self.teacher = teacher.requires_grad_(False)
        self._teacher_layers = teacher_layers
        self._lm_weight = lm_weight
        # A dimension with nearly the same value for all words counts little.
        self.statistics = torch.nn.BatchNorm1d(teacher.output_dim, eps=0.0025, momentum=None, affine=False)
        self.map = torch.nn.Linear(self.bilm.get_output_dim(), teacher.output_dim)
        torch.nn.init.zeros_(self.map.weight)
        torch.nn.init.zeros_(self.map.bias)
        self._distance = Average()

    def forward(  # type: ignore[override]
        self, character_ids: torch.Tensor, word_ids: torch.Tensor, teacher: dict[str, torch.Tensor]
    ) -> dict[str, Any]:
        """As in `BilmLanguageModel`, with the tensors of the teacher's token indexer."""
        output = super().forward(character_ids, word_ids)
        contexts = output["contexts"]
        device = character_ids.device.type
        # AllenNLP's trainer has autocast only on a GPU.
        amp = self.bilm.precision == "bf16" or torch.is_autocast_enabled(device)
        with torch.autocast(device, enabled=amp):
            layers = self.teacher(**teacher).layers
        # Shape: (batch_size * timesteps, teacher_dim)
        vectors = torch.stack([layers[layer] for layer in self._teacher_layers]).mean(0).flatten(0, 1)
        # Shape: (n_words, teacher_dim)
        vectors = vectors[contexts.sentences.targets].float()
        if self.training:
            self.statistics(vectors)
        mean, variance = self.statistics.running_mean, self.statistics.running_var
        targets = batch_norm(vectors, mean, variance, eps=self.statistics.eps)
        # Shape: (n_words, dim)
        hidden = torch.stack([contexts.sentences.of_words(layer) for layer in contexts.layers]).mean(0)
        distance = mse_loss(self.map(layer_norm(hidden.float(), hidden.shape[-1:])).float(), targets)
        self._distance(distance.detach())
        return {**output, "loss": self._lm_weight * output["loss"] + distance}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """Those of `BilmLanguageModel`, and the `distance` from the teacher: 1 means that nothing was learned."""
        return {**super().get_metrics(reset), "distance": self._distance.get_metric(reset)}
