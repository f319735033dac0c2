"""Data, biLM and settings that the runs of a table share."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo_tasks.replication.plan.config import SEEDS, TEMPLATES, Call, evaluated_configs
from elmo_tasks.replication.plan.data_digests import RECORD, digest, inputs_of, with_roots_named
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.subset import SUBSET_TASKS, size_of, total_of, write_subset
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.plan.variant import N_LSTMS, Variant, is_bilm

__all__ = ["Experiment"]

_OF_VARIANTS = {"elmo_at", "elmo_layers", "elmo_l2", "layer", "contextual"}
_DATA, _BILM = "data", "biLM"
_OURS = {*SEEDS, "evaluate_on_test", "trainer.checkpointer"}


@dataclass(frozen=True)
class Experiment:
    """
    Data, biLM, and settings other than those of the templates; it makes the runs.

    # Parameters

    variables
        External variables of the configs: `ELMO_TASKS_DATA`, `ELMO_TASKS_GLOVE`, `ELMO_TASKS_BILM`.
    results
        The folder of all runs.
    overrides, arguments
        By task: what overrides its configs, as `allennlp train -o` does, and what its template is called with in
        addition to the places of ELMo. A key `""` is for all tasks; a task's own entries take precedence.
    names
        By task: what a caption calls its data.
    without_data
        Tasks whose data is not there. Their runs are known, but without digests of the data, and cannot be trained.

    # Raises

    `ValueError`
        If a task is unknown, or an override or argument is about what runs set themselves.
    """

    variables: Mapping[str, str]
    results: Path
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    without_data: frozenset[str] = frozenset()
    _configs: dict[tuple[str, Variant], str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _inputs: dict[tuple[str, Variant], dict[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for given in (self.overrides, self.arguments, self.names):
            unknown = sorted(set(given) - {"", *TASKS})
            if unknown:
                raise ValueError(f"a task must be one of {', '.join(TASKS)}, but one is {unknown[0]!r}")
        for overrides in self.overrides.values():
            wrong = sorted(key for key in overrides if any(key == ours or key.startswith(f"{ours}.") for ours in _OURS))
            if wrong:
                raise ValueError(f"every run sets {wrong[0]} itself: take it out of --overrides; --seeds says how many")
        for arguments in self.arguments.values():
            wrong = sorted(_OF_VARIANTS & set(arguments))
            if wrong:
                raise ValueError(f"{wrong[0]} is what the variants of a table differ in: take it out of --arguments")

    def evaluate(self, variants: Iterable[tuple[str, Variant]]) -> None:
        """Evaluates the configs of variants of tasks, all at once, which takes less time than `run` with each."""
        missing = [key for key in dict.fromkeys(variants) if key not in self._configs]
        calls = [self._call(task, variant) for task, variant in missing]
        configs = evaluated_configs(calls, self.variables) if calls else []
        for (task, variant), config in zip(missing, configs, strict=True):
            if variant.layer is not None:
                _check_layers(config)
            config["evaluate_on_test"] = True
            named = with_roots_named(config, {**self._roots, **_other_roots(variant)})
            self._configs[task, variant] = json.dumps([config, named])

    def missing_inputs(self, variants: Iterable[tuple[str, Variant]]) -> dict[str, str]:
        """By task, the first file that is not there and that one of its variants needs."""
        missing: dict[str, str] = {}
        for task, variant in variants:
            try:
                self._inputs_of(task, variant)
            except FileNotFoundError as error:
                missing.setdefault(task, str(error))
        return missing

    def _call(self, task: str, variant: Variant) -> Call:
        arguments = {**self._of_task(self.arguments, task), **variant.arguments}
        return Call(TEMPLATES / f"{task}.libsonnet", arguments, self._of_task(self.overrides, task))

    def run(self, task: str, variant: Variant, seed: int, size: int | None = None) -> Run:
        """
        # Parameters

        task
            Its name.
        variant
            Where ELMo is, and how.
        seed
            For all random numbers.
        size
            How much of the training set; `None` is all.

        # Raises

        `ValueError`
            If the template does not take an argument or override.
        `FileNotFoundError`
            If data or biLM is not there.
        """
        config, named = self._config(task, variant)
        inputs = self._inputs_of(task, variant)
        config |= dict.fromkeys(SEEDS, seed)
        if size is not None:
            if task not in self.without_data:
                config["train_data_path"] = str(self.subset_path(task, size))
            named["train_data_path"] = f"{size} of {named['train_data_path']}"
        identity = {"task": task, "variant": variant.name, "seed": seed, "config": named, "inputs": inputs}
        about = self._about(task, variant, config)
        return Run(task, variant.name, seed, size, self.results, config, identity, about)

    def size(self, task: str, size: str) -> int | None:
        """`size_of` for the task's training set."""
        return size_of(size, task, self._training_set(task))

    def total(self, task: str) -> int:
        """The size of the task's training set."""
        return total_of(task, self._training_set(task))

    def subset_path(self, task: str, size: int) -> Path:
        """Where a part of the training set is; the name has a digest of the data."""
        source = self._training_set(task)
        ending = source.suffix or ".gold_conll"
        return self.results / "subsets" / f"{task}-{digest(source, self.results / RECORD)}-{size}{ending}"

    def write_subset(self, task: str, size: int) -> None:
        """Writes a part of the training set, if it is not there yet."""
        path = self.subset_path(task, size)
        if not path.exists():
            write_subset(task, self._training_set(task), size, path)

    @property
    def _roots(self) -> dict[str, str]:
        names = {"ELMO_TASKS_DATA": _DATA, "ELMO_TASKS_BILM": _BILM}
        return {self.variables[variable].rstrip("/"): name for variable, name in names.items()}

    def _training_set(self, task: str) -> Path:
        if task not in SUBSET_TASKS:
            raise ValueError(f"parts can be taken of the training sets of {' and '.join(SUBSET_TASKS)}, not of {task}")
        config, _ = self._config(task, Variant.baseline())
        return Path(config["train_data_path"])

    def _of_task(self, given: Mapping[str, Mapping[str, Any]], task: str) -> dict[str, Any]:
        return {**given.get("", {}), **given.get(task, {})}

    def _config(self, task: str, variant: Variant) -> tuple[dict[str, Any], dict[str, Any]]:
        """The config, and the config with roots named: copies that may be changed for each seed."""
        self.evaluate([(task, variant)])
        config, named = json.loads(self._configs[task, variant])
        return config, named

    def _inputs_of(self, task: str, variant: Variant) -> dict[str, str]:
        """The digests of the files that a config names."""
        if (task, variant) not in self._inputs:
            config, _ = self._config(task, variant)
            known = {**self._roots, **_other_roots(variant)}
            without = {_DATA} if task in self.without_data else ()
            self._inputs[task, variant] = inputs_of(config, known, self.results / RECORD, without=without)
        return self._inputs[task, variant]

    def changed_inputs(self, run: Run) -> list[str]:
        """
        The names of files that are not those that a run of a task is of, as when they were changed while it was
        trained; none for a biLM of Table 7, which has a copy of its text.
        """
        variant = next((it for task, it in self._configs if (task, it.name) == (run.task, run.variant)), None)
        if variant is None:
            return []
        self._inputs.pop((run.task, variant), None)
        found, known = self._inputs_of(run.task, variant), run.identity["inputs"]
        return sorted(name for name in {*found, *known} if found.get(name) != known.get(name))

    def _about(self, task: str, variant: Variant, config: Mapping[str, Any]) -> dict[str, Any]:
        bilm = _bilm_of(config)
        other = variant.contextual
        folder = self.variables["ELMO_TASKS_BILM"] if other is None else other[1]
        name = None if bilm is None else _bilm_name(bilm, folder)
        return {
            "data": self.names.get(task, f"{self.variables['ELMO_TASKS_DATA']}/{task}"),
            # In the caption of a table another one is next to the biLM of the other runs.
            **({"bilm": name} if other is None else {"bilm": None, _name_of(other): name}),
            "arguments": self._of_task(self.arguments, task),
            "overrides": self._of_task(self.overrides, task),
        }


def _bilm_of(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a config has as its biLM; `None` of a baseline."""
    model = config["model"]
    # Where there are no places, ELMo is the only embedder.
    found: dict[str, Any] | None = model.get("bilm", model["text_field_embedder"]["token_embedders"].get("elmo"))
    return None if found is None else found.get("bilm", found)


def _check_layers(config: Mapping[str, Any]) -> None:
    """Of a run with one layer: a row of Table 6."""
    bilm = _bilm_of(config)
    assert bilm is not None
    n_lstms = bilm["options"]["lstm"]["n_layers"]
    if n_lstms != N_LSTMS:
        raise ValueError(
            f"table 6 is of a biLM with {N_LSTMS} LSTMs each way, but this one has {n_lstms}: train a tagger of each "
            "layer with the template pos.libsonnet and its argument 'layer'"
        )


def _other_roots(variant: Variant) -> dict[str, str]:
    """Of a folder that is no root for all: the same weights are the same run, wherever they are."""
    if variant.contextual is None or not Path(variant.contextual[1]).is_dir():
        return {}
    return {variant.contextual[1]: _name_of(variant.contextual)}


def _name_of(contextual: tuple[str, str]) -> str:
    return f"{_BILM if is_bilm(contextual[1]) else 'transformer'} {contextual[0]}"


def _bilm_name(bilm: Mapping[str, Any], folder: str) -> str:
    """The biLM of a config, or the transformer in its place."""
    if "options" not in bilm:
        return str(bilm["model_name"])
    lstm = bilm["options"]["lstm"]
    cells = f"{lstm['n_layers']} x {lstm['dim']} cells, vectors of {2 * lstm['projection_dim']}"
    return f"{Path(folder.rstrip('/')).name} ({cells})"
