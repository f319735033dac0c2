"""Variants of a task's model: the arguments of its template."""

from dataclasses import dataclass
from typing import Any

from elmo_tasks.replication.plan.task import Task

__all__ = ["Variant"]


@dataclass(frozen=True)
class Variant:
    """
    One call of a task's template. Equal calls have equal names, whatever table they are for, so that a run serves all.

    # Parameters

    places
        Where ELMo is: `()`, `("input",)`, `("output",)` or both.
    top
        The highest layer alone in place of all.
    l2
        The paper's lambda; `None` is the template's.
    layer
        The only layer, of a template without places.
    """

    places: tuple[str, ...]
    top: bool = False
    l2: float | None = None
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.layer is not None and (self.places or self.top or self.l2 is not None):
            raise ValueError(f"a variant of layer {self.layer} alone must have nothing else, but is {self}")

    @classmethod
    def baseline(cls) -> "Variant":
        """Without ELMo."""
        return cls(())

    @classmethod
    def elmo(cls, task: Task, *, l2: float | None = None, top: bool = False) -> "Variant":
        """With ELMo where the paper's Table 1 has it; a lambda that is the template's own is not named."""
        return cls(task.places, top, None if l2 == task.l2 else l2)

    @classmethod
    def of_layer(cls, layer: int) -> "Variant":
        """A layer alone, of a template without places."""
        return cls((), layer=layer)

    @property
    def name(self) -> str:
        """For example `baseline`, `input`, `both`, `both-top`, `both-l2-1`, `layer-1`."""
        if self.layer is not None:
            return f"layer-{self.layer}"
        place = {0: "baseline", 1: "".join(self.places), 2: "both"}[len(self.places)]
        return place + "-top" * self.top + ("" if self.l2 is None else f"-l2-{self.l2:g}")

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of the template; what is not named has its default."""
        if self.layer is not None:
            return {"layer": self.layer}
        arguments: dict[str, Any] = {"elmo_at": list(self.places)} if self.places else {}
        if self.top:
            arguments["elmo_layers"] = "top"
        if self.l2 is not None:
            arguments["elmo_l2"] = self.l2
        return arguments
