"""A plan of a whole replication in one file: tasks, settings, seeds, tables and figures."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from elmo_tasks import environment
from elmo_tasks.replication.plan.exhibit import Exhibit, tasks_of
from elmo_tasks.replication.plan.plan import variants_of
from elmo_tasks.replication.plan.subset import SUBSET_TASKS
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.plan.variant import Variant
from elmo_tasks.shipped import TRAINING_CONFIGS
from elmo_tasks.vectors.pretrained import NAMED_BILMS

__all__ = ["PlanFile", "PlannedRun", "PlannedTask"]

_FORMAT = 1
_MEASUREMENTS = (Exhibit.TABLE_5, Exhibit.TABLE_7)


class PlannedRun(NamedTuple):
    """The arguments of `Experiment.run`."""

    task: str
    variant: Variant
    seed: int
    size: int | None = None


@dataclass(frozen=True)
class PlannedTask:
    """
    # Parameters

    task
        Its name, which is that of the folder of its data.
    data
        What a caption calls the data.
    arguments, overrides
        See `Experiment`.
    seeds
        The tables and figures that it is in, and how many seeds each has.
    sizes
        For Figure 1: sizes of parts of the training set, in addition to the whole.
    """

    task: str
    data: str
    arguments: dict[str, Any]
    overrides: dict[str, Any]
    seeds: dict[Exhibit, int]
    sizes: list[int]

    @classmethod
    def from_json(cls, content: Any) -> "PlannedTask":
        """
        # Raises

        `ValueError`
            If it is not such an object.
        """
        kinds = {"task": str, "data": str, "arguments": dict, "overrides": dict, "seeds": dict, "sizes": list}
        _check_keys(content, kinds, optional=("arguments", "overrides", "sizes"))
        task = content["task"]
        if task not in TASKS:
            raise ValueError(f"'task' must be one of {', '.join(TASKS)}, but is {task!r}")
        seeds: dict[Exhibit, int] = {}
        for name, number in content["seeds"].items():
            known = [exhibit for exhibit in Exhibit if task in tasks_of(exhibit)]
            if name not in known:
                raise ValueError(f"'seeds' of {task} must name some of {', '.join(known)}, but names {name!r}")
            if type(number) is not int or number < 1:
                raise ValueError(f"'seeds' of {task} must be numbers of at least 1, but {name} has {number!r}")
            seeds[Exhibit(name)] = number
        sizes = content.get("sizes", [])
        if wrong := [size for size in sizes if type(size) is not int or size < 1]:
            raise ValueError(f"'sizes' of {task} must be numbers of at least 1, but one is {wrong[0]!r}")
        if sizes and (task not in SUBSET_TASKS or Exhibit.FIGURE_1 not in seeds):
            raise ValueError(f"'sizes' are for figure 1 of {' and '.join(SUBSET_TASKS)}, but {task} has some")
        arguments, overrides = (content.get(key, {}) for key in ("arguments", "overrides"))
        return cls(task, content["data"], arguments, overrides, seeds, sorted(sizes))

    def runs(self, exhibit: Exhibit) -> Iterator[PlannedRun]:
        """Those of a table or figure, seed by seed."""
        sizes = [*(self.sizes if exhibit is Exhibit.FIGURE_1 else ()), None]
        for seed in range(1, self.seeds.get(exhibit, 0) + 1):
            for variant in variants_of(exhibit, TASKS[self.task]):
                for size in sizes:
                    yield PlannedRun(self.task, variant, seed, size)


@dataclass(frozen=True)
class PlanFile:
    """
    # Parameters

    path
        The file.
    bilm
        The name of a biLM, or its folder, as seen from the plan's.
    glove
        The file of word vectors, in the folder `glove` of the data.
    tasks
        In the order in which they are trained.
    measurements
        Tables 5 and 7, which are of the biLM alone; `measurements` in the file may be omitted.
    """

    path: Path
    bilm: str
    glove: str
    tasks: tuple[PlannedTask, ...]
    measurements: tuple[Exhibit, ...] = ()

    @classmethod
    def from_file(cls, plan: str) -> "PlanFile":
        """
        # Parameters

        plan
            The name of a plan that ships, as `open`, or a Jsonnet file.

        # Raises

        `FileNotFoundError`, `ConfigurationError`
            If there is none, or it is not Jsonnet.
        `ValueError`
            If it is not a plan.
        """
        path = _path_of(plan)
        content = json.loads(environment.evaluate_file(str(path), {}))
        try:
            kinds = {"format": int, "bilm": str, "glove": str, "tasks": list, "measurements": list}
            _check_keys(content, kinds, optional=("measurements",))
            if content["format"] != _FORMAT:
                raise ValueError(f"'format' must be {_FORMAT}, but is {content['format']}")
            tasks = tuple(map(PlannedTask.from_json, content["tasks"]))
            names = [task.task for task in tasks]
            if twice := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"each task must be there once, but {twice[0]} is there twice")
            given = content.get("measurements", [])
            if unknown := [name for name in given if name not in _MEASUREMENTS]:
                raise ValueError(
                    f"'measurements' must name some of {', '.join(_MEASUREMENTS)}, but names {unknown[0]!r}"
                )
        except ValueError as error:
            raise ValueError(f"{path} must be a plan, but: {error}") from None
        bilm = content["bilm"]
        if bilm and bilm not in NAMED_BILMS and (beside := path.parent / bilm).is_dir():
            bilm = str(beside)
        return cls(path, bilm, content["glove"], tasks, tuple(map(Exhibit, given)))

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def exhibits(self) -> list[Exhibit]:
        """Its tables and figures, in the order of the paper."""
        of_tasks = {exhibit for task in self.tasks for exhibit in task.seeds}
        return [exhibit for exhibit in Exhibit if exhibit in of_tasks or exhibit in self.measurements]

    @property
    def task_names(self) -> list[str]:
        """In the order in which they are trained."""
        return [task.task for task in self.tasks]

    def settings(self) -> dict[str, Mapping[str, Any]]:
        """`overrides`, `arguments` and `names` of `Experiment`."""
        return {
            "overrides": {task.task: task.overrides for task in self.tasks},
            "arguments": {task.task: task.arguments for task in self.tasks},
            "names": {task.task: task.data for task in self.tasks},
        }

    def runs(self, exhibits: Collection[Exhibit], tasks: Collection[str]) -> list[PlannedRun]:
        """
        # Parameters

        exhibits, tasks
            Some of those of the plan.

        # Returns

        `List[PlannedRun]`
            Each once, in the order in which the evidence grows fastest: Table 1 with seed 1 of all tasks, then with
            seed 2, and then by turns the next seed of the other tables and figures, and that of Table 1.
        """
        found: list[tuple[int, PlannedRun]] = []
        for exhibit in sorted(exhibits, key=lambda exhibit: list(Exhibit).index(exhibit)):
            for task in self.tasks:
                if task.task in tasks:
                    # Figure 2 has no runs of its own.
                    later = 0 if exhibit in (Exhibit.TABLE_1, Exhibit.FIGURE_2) else 1
                    found += [(run.seed + later, run) for run in task.runs(exhibit)]
        # The order of runs in one round is that of the tables: `sorted` keeps it.
        return list(dict.fromkeys(run for _, run in sorted(found, key=lambda entry: entry[0])))


def _path_of(plan: str) -> Path:
    path = Path(plan)
    if path.suffix == ".jsonnet" or path.is_file():
        if not path.is_file():
            raise FileNotFoundError(f"the plan {path} must be a file, but is not there")
        return path.absolute()
    shipped = TRAINING_CONFIGS / f"{plan}.jsonnet"
    if not shipped.is_file():
        raise FileNotFoundError(f"a plan must be `open`, or a file that ends with .jsonnet, but is {plan!r}")
    return shipped


def _check_keys(content: Any, kinds: Mapping[str, type], optional: Collection[str] = ()) -> None:
    if not isinstance(content, dict):
        raise ValueError(f"it must be an object, but is {content!r:.100}")
    if unknown := sorted(set(content) - set(kinds)):
        raise ValueError(f"its keys must be {', '.join(kinds)}, but one is {unknown[0]!r}")
    for key, kind in kinds.items():
        if key not in content and key in optional:
            continue
        if not isinstance(content.get(key), kind) or isinstance(content[key], bool):
            raise ValueError(f"'{key}' must be {_NAMES[kind]}, but is {content.get(key)!r:.100}")


_NAMES = {int: "a number", str: "a string", dict: "an object", list: "a list"}
