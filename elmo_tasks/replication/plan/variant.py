"""Variants of a task's model: the arguments of its template."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_tasks.bilm.model_files import model_files, read_any_options
from elmo_tasks.files.sealed_json import read_json
from elmo_tasks.replication.plan.task import Task
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["N_LSTMS", "Variant", "bilm_argument", "is_bilm", "name_of_other"]

_NAME = re.compile(r"[A-Za-z0-9_.]+")
N_LSTMS = 2
"""Each way, of a biLM of which there are runs with each layer alone, as in Table 6."""

# Other variants have names like `both-top` and `both-l2-1`.
_TAKEN = ("top", "l2")


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
    contextual
        The name of what is at ELMo's places in place of the biLM of the other runs, and what it is: the checkpoint of a
        transformer, see `PretrainedTransformer`, or the folder of another biLM, as of a fine-tuned one.
    """

    places: tuple[str, ...]
    top: bool = False
    l2: float | None = None
    layer: int | None = None
    contextual: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.layer is not None and (self.places or self.top or self.l2 is not None):
            raise ValueError(f"a variant of layer {self.layer} alone must have nothing else, but is {self}")
        if self.contextual is not None and (not _NAME.fullmatch(name := self.contextual[0]) or name in _TAKEN):
            raise ValueError(
                "a transformer or biLM must have a name of letters, digits, points and underscores, other than top and "
                f"l2, but is named {name!r}"
            )

    @classmethod
    def baseline(cls) -> "Variant":
        """Without ELMo."""
        return cls(())

    @classmethod
    def elmo(
        cls,
        task: Task,
        *,
        l2: float | None = None,
        top: bool = False,
        contextual: tuple[str, str] | None = None,
    ) -> "Variant":
        """
        With ELMo, a transformer or another biLM, where the paper's Table 1 has ELMo; a lambda that is the template's
        own is not named.
        """
        return cls(task.places, top, None if l2 == task.l2 else l2, contextual=contextual)

    @classmethod
    def of_layer(cls, layer: int) -> "Variant":
        """A layer alone, of a template without places."""
        return cls((), layer=layer)

    @property
    def name(self) -> str:
        """For example `baseline`, `input`, `both`, `both-top`, `both-l2-1`, `layer-1`, `both-bert`."""
        if self.layer is not None:
            return f"layer-{self.layer}"
        place = {0: "baseline", 1: "".join(self.places), 2: "both"}[len(self.places)]
        of_other = "" if self.contextual is None else f"-{self.contextual[0]}"
        return place + of_other + "-top" * self.top + ("" if self.l2 is None else f"-l2-{self.l2:g}")

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
        if self.contextual is not None:
            _, given = self.contextual
            arguments |= {"bilm": bilm_argument(Path(given))} if is_bilm(given) else {"contextual": given}
        return arguments


def name_of_other(task: Task, variant: str) -> str | None:
    """Of `both-bert`, `bert`: what is in place of the biLM of the other runs, if a variant's name says that."""
    beginning = f"{Variant.elmo(task).name}-"
    name = variant.removeprefix(beginning)
    return name if name != variant and _NAME.fullmatch(name) and name not in _TAKEN else None


def is_bilm(contextual: str) -> bool:
    """Whether it is the folder of a biLM, and not a transformer's checkpoint."""
    folder = Path(contextual)
    return (folder / "options.json").is_file() or model_files(folder) is not None


def bilm_argument(folder: Path) -> dict[str, Any]:
    """
    What templates take as a biLM.

    # Raises

    `FileNotFoundError`, `ValueError`
        If the folder lacks options or weights, or the options are not JSON.
    """
    options, weights = pretrained_files(folder)
    # As they are in the file, if it is one of options.
    content = read_json(options) if model_files(folder) is None else read_any_options(options).to_dict()
    return {"options": content, "pretrained_file": str(weights)}
