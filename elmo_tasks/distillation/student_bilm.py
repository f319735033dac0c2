"""A small biLM that learns the layers of a larger one from text."""

from typing import Any, Literal

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.training.metrics import Average

from elmo_tasks.bilm import Bilm, BilmOptions
from elmo_tasks.distillation.pruning import copy_largest
from elmo_tasks.modules.contextual.pretrained_bilm import PretrainedBilm

__all__ = ["StudentBilm"]


@Model.register("elmo_bilm_student")
class StudentBilm(Model):
    """
    A biLM in training whose layers, each after a linear map of its own, are to be those of a frozen biLM, the teacher.
    The loss of a layer is the mean squared error of its words, divided by the mean square of the teacher's numbers, so
    that all layers count the same; the loss is the mean of the layers. Its metrics are the errors `error_layer_0`,
    `error_layer_1`, ... and their mean `error`: 0 is the teacher, and 1 is what zeros have.

    Registered as a `Model` with name "elmo_bilm_student". `allennlp elmo-export` writes the student in the public
    format, without the maps and the teacher.

    # Parameters

    vocab : `Vocabulary`
        Not used: nothing is predicted.
    options : `Dict[str, Any]`
        The content of an `options.json`: the shape of the student, with as many layers as the teacher has.
    teacher : `PretrainedBilm`
        Its weights are in the archive of a training too.
    start : `Literal["random", "teacher"]`
        What the student begins with: random weights, or a part of the teacher's (`copy_largest`), for which it must
        differ from the teacher in nothing but the number of cells and filters.

    # Raises

    `ConfigurationError`
        If the student has another number of layers, or differs too much to begin with weights of the teacher; a biLM
        has dictionaries of its own; or the teacher is not frozen.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        options: dict[str, Any],
        teacher: PretrainedBilm,
        start: Literal["random", "teacher"] = "random",
        **kwargs: Any,
    ) -> None:
        # By name, from the config: `regularizer` and whatever else `Model` takes.
        super().__init__(vocab, **kwargs)
        try:
            self.bilm = Bilm(BilmOptions.from_dict(options))
        except ValueError as error:
            raise ConfigurationError(f"the student cannot be made: {error}") from error
        if self.bilm.num_layers != teacher.num_layers:
            raise ConfigurationError(
                "student and teacher must have the same number of layers, but lstm.n_layers is "
                f"{self.bilm.options.n_layers} in the student and {teacher.bilm.options.n_layers} in the teacher"
            )
        if any(bilm.options.dictionaries is not None for bilm in (self.bilm, teacher.bilm)):
            raise ConfigurationError(
                "student and teacher must read the bytes of a word, as biLMs in the public format do, but one of them "
                "has dictionaries of its own, as those of ELMoForManyLangs"
            )
        if any(weight.requires_grad for weight in teacher.parameters()):
            raise ConfigurationError("the teacher must be frozen, but its requires_grad is true: omit it")
        if start not in ("random", "teacher"):
            raise ConfigurationError(f"the start of a student must be 'random' or 'teacher', but is {start!r}")
        if start == "teacher":
            try:
                copy_largest(self.bilm, teacher.bilm)
            except ValueError as error:
                raise ConfigurationError(
                    f"the student cannot begin with weights of its teacher: {error}; or set start to 'random'"
                ) from error
        self.teacher = teacher
        dims = self.bilm.get_output_dim(), teacher.get_output_dim()
        maps = [torch.nn.Linear(*dims) for _ in range(teacher.num_layers)]
        for each in maps:
            # The layers of the student are pulled towards the coordinates of the teacher's.
            torch.nn.init.eye_(each.weight)
            torch.nn.init.zeros_(each.bias)
        self.maps = torch.nn.ModuleList(maps)
        self._errors = [Average() for _ in self.maps]

    def forward(self, character_ids: torch.Tensor, word_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """
        # Parameters

        character_ids : `torch.Tensor`
            Shape `(batch_size, timesteps, 50)`, zero where there is no word.
        word_ids : `torch.Tensor`
            Not used; batches of the data loader "elmo_lm" have it.

        # Returns

        `Dict[str, torch.Tensor]`
            `loss`; see the class.
        """
        expected, found = self.teacher(character_ids), self.bilm(character_ids)
        losses = []
        for linear, error, layer, target in zip(self.maps, self._errors, found.layers, expected.layers, strict=True):
            # Shape: (n_words, dim of the teacher)
            difference = linear(layer[found.mask]) - target[expected.mask]
            losses.append(difference.square().mean() / target[expected.mask].square().mean())
            error(losses[-1].item())
        return {"loss": torch.stack(losses).mean()}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """See the class."""
        errors = [float(error.get_metric(reset)) for error in self._errors]
        by_layer = {f"error_layer_{layer}": error for layer, error in enumerate(errors)}
        return {"error": sum(errors) / len(errors), **by_layer}
