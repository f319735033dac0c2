"""A student that learns from labelled texts and from what a teacher says of others."""

from collections.abc import Callable
from typing import Any, Literal, Optional

import torch
from allennlp.common import Lazy
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.modules import ConditionalRandomField
from allennlp.training.metrics import Average

from elmo_tasks.distillation.soft_labels import check_labels, check_model, soft_labels

__all__ = ["DistilledModel"]


@Model.register("elmo_distilled")
class DistilledModel(Model):
    """
    A model while it learns from a teacher (Hinton et al. 2015). The loss of a step is `w * l + (1 - w) * t`: `l` is the
    student's own loss for some labelled texts, and `t` says how far it is from the teacher for others. That is the
    cross entropy of the probabilities at a temperature, times its square so that the gradients keep their size; or the
    mean squared difference of the logits. Of a tagger with a CRF, the probabilities are the marginals of each word's
    tags, and as in its own loss they are added up over a sentence.

    Registered as a `Model` with name "elmo_distilled". `allennlp elmo-distill` writes it into the config; the archive
    that it ends with is the student's own.

    # Parameters

    vocab : `Vocabulary`
        See `Model`.
    student : `Lazy[Model]`
        The model.
    labels : `List[str]`
        The teacher's, in its order.
    loss : `Literal["cross_entropy", "mse"]`
        Of the teacher.
    temperature : `float`
        Of both models, for the cross entropy.
    labelled_weight : `float`
        `w`, from 0 to 1.

    # Raises

    `ConfigurationError`
        If the student has other labels than the teacher, or a value is out of its range.
    """

    def __init__(
        self,
        vocab: Vocabulary,
        student: Lazy[Model],
        labels: list[str],
        loss: Literal["cross_entropy", "mse"] = "cross_entropy",
        temperature: float = 1.0,
        labelled_weight: float = 0.5,
    ) -> None:
        super().__init__(vocab)
        if loss not in ("cross_entropy", "mse"):
            raise ConfigurationError(f"the loss of a distillation must be 'cross_entropy' or 'mse', but is {loss!r}")
        if not temperature > 0 or not 0 <= labelled_weight <= 1:
            raise ConfigurationError(
                "a distillation must have a temperature above 0 and a weight of the labelled texts from 0 to 1, but "
                f"has {temperature} and {labelled_weight}"
            )
        own = vocab.get_token_to_index_vocabulary("labels")
        _configured(check_labels, labels, own)
        self.student = student.construct(vocab=vocab)
        _configured(check_model, self.student)
        self.default_predictor = type(self.student).default_predictor
        # The teacher's number of each label of the student.
        self._order = [labels.index(label) for label, _ in sorted(own.items(), key=lambda item: item[1])]
        self._loss = loss
        self._temperature = temperature
        self._labelled_weight = labelled_weight
        self._distance = Average()

    def forward(
        self,
        labelled: Optional[dict[str, Any]] = None,
        unlabelled: Optional[dict[str, Any]] = None,
        **inputs: Any,
    ) -> dict[str, Any]:
        """
        # Parameters

        labelled : `Dict[str, Any]`, optional
            In training: the inputs of the student with gold.
        unlabelled : `Dict[str, Any]`, optional
            In training: those without, and the field `teacher`.
        inputs : `Any`
            Otherwise: the inputs of the student.

        # Returns

        `Dict[str, Any]`
            In training the `loss`, otherwise what the student returns.
        """
        if labelled is None or unlabelled is None:
            output: dict[str, Any] = self.student(**inputs)
            return output
        distance = self._distance_to_teacher(dict(unlabelled))
        self._distance(distance.item())
        own = self.student(**labelled)["loss"]
        return {"loss": self._labelled_weight * own + (1.0 - self._labelled_weight) * distance}

    def _distance_to_teacher(self, unlabelled: dict[str, Any]) -> torch.Tensor:
        # Shape: (batch_size, n_labels), or of a tagger (batch_size, timesteps, n_labels)
        teacher = unlabelled.pop("teacher").float()[..., self._order]
        found = soft_labels(self.student, unlabelled, self._temperature)
        if teacher.dim() == 3:
            lengths = found.ends.diff(prepend=found.ends.new_zeros(1))
            # Shape: (n_words, n_labels)
            teacher = teacher[torch.arange(teacher.size(1), device=teacher.device) < lengths.unsqueeze(1)]
        if self._loss == "mse":
            return torch.nn.functional.mse_loss(found.logits, teacher)
        smallest = torch.finfo(found.probabilities.dtype).tiny
        # Shape: (n_items,)
        entropy = -(teacher * found.probabilities.clamp_min(smallest).log()).sum(-1) * self._temperature**2
        is_sequence = isinstance(getattr(self.student, "crf", None), ConditionalRandomField)
        return entropy.sum() / len(found.ends) if is_sequence else entropy.mean()

    def make_output_human_readable(self, output_dict: dict[str, Any]) -> dict[str, Any]:
        """The student's."""
        readable: dict[str, Any] = self.student.make_output_human_readable(output_dict)
        return readable

    def get_regularization_penalty(self) -> Any:
        """The student's."""
        return self.student.get_regularization_penalty()

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        """The student's; and `distillation_loss`, the mean distance to the teacher, if there was text of it."""
        metrics: dict[str, float] = self.student.get_metrics(reset)
        if self._distance._count:
            metrics = {**metrics, "distillation_loss": float(self._distance.get_metric(reset))}
        return metrics


def _configured(check: Callable[..., None], *values: Any) -> None:
    try:
        check(*values)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
