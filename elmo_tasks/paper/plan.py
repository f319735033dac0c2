"""A plan: which tasks are trained with which settings and how many seeds, and for which tables."""

import json
import os
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.common.checks import ConfigurationError
from allennlp.common.params import with_overrides

from elmo_tasks.configs import config_variables, evaluate_file, strings_of
from elmo_tasks.data.dataset_readers.snli_reader import labelled_pairs
from elmo_tasks.data.dataset_readers.srl_reader import annotated_sentences
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import file_digest, text_digest
from elmo_tasks.files.shipped import DEFAULT_BILM, TRAINING_CONFIGS
from elmo_tasks.paper.numbers import TABLES, TASKS, TRANSFORMER, variants_of
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["Plan", "Run", "digest_of", "size_of", "write_subset"]

_SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")


class _Key(NamedTuple):
    """What identifies a run in its plan."""

    task: str
    variant: str
    seed: int
    # None for the whole training set.
    size: int | None


class _Variant(NamedTuple):
    """A variant of a task, by its name."""

    task: str
    name: str


# The arguments of a task's template.
_Arguments = dict[str, Any]

_TASK_DEFAULTS: dict[str, Any] = {
    "arguments": {},
    "overrides": {},
    "sizes": [],
    # By the size of the training set, as text; they take precedence over `overrides`.
    "overrides_by_size": {},
}


@dataclass(frozen=True)
class Run:
    """
    A training: `config` is trained in `folder`, and its scores are then written to `<folder>.json`
    next to it.

    `digest` identifies the config, regardless of its folders. `inputs` has the digests of the files
    that the config names, if they exist here: a checkout shows published scores without the data.
    With a `patience`, the run must have ended because of it.
    """

    task: str
    variant: str
    seed: int
    size: int | None
    folder: Path = field(repr=False)
    config: dict[str, Any] = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    training_size: int | None
    digest: str
    inputs: dict[str, str] = field(repr=False)
    patience: int | None = None

    @property
    def name(self) -> str:
        return f"{self.task}/{self.variant}/{self.folder.name}"

    @property
    def file(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.json")


class Plan:
    """
    A plan by name (`paper` or `open`), or in a Jsonnet file.

    # Parameters

    data, bilm
        The folder of the data, and the biLM; by default the plan's, or else the environment's.
    results
        The folder of the runs.
    changes
        By task, or `""` for all: `overrides` and `arguments` that take precedence over the plan's.
    seeds
        The number of seeds for each table; by default the plan's.
    """

    def __init__(
        self,
        name: str,
        *,
        results: Path,
        data: str | None = None,
        bilm: str | None = None,
        changes: dict[str, dict[str, Any]] | None = None,
        seeds: int | None = None,
    ) -> None:
        path = Path(name)
        if path.suffix != ".jsonnet":
            path = TRAINING_CONFIGS / f"{name}.jsonnet"
        environment = dict(os.environ)
        if data:
            environment["ELMO_TASKS_DATA"] = data
        if path.stem != "paper" and not environment.get("ELMO_TASKS_DATA"):
            # Only the paper's plan, which names no data, may be tried on the included sample data.
            environment["ELMO_TASKS_DATA"] = "data"
        variables = config_variables(environment)
        content = json.loads(evaluate_file(str(path), variables))
        bilm = bilm or content.get("bilm")
        if bilm:
            environment["ELMO_TASKS_BILM"] = bilm
        glove = content.get("glove")
        if glove:
            environment["ELMO_TASKS_GLOVE"] = glove
        self.has_small_data = not environment.get("ELMO_TASKS_DATA")
        self.bilm = environment.get("ELMO_TASKS_BILM") or DEFAULT_BILM
        self.variables = config_variables(environment)
        options_file, _ = pretrained_files(self.variables["ELMO_TASKS_BILM"])
        self.variables["ELMO_TASKS_BILM"] = str(options_file.parent)
        self.results = results.absolute()
        self.must_converge: bool = content.get("must_converge", False)
        self.transformer: dict[str, Any] | None = content.get("transformer")
        self.tasks: dict[str, dict[str, Any]] = {}
        for task in content["tasks"]:
            self.tasks[task["task"]] = {**_TASK_DEFAULTS, **task}
        self._evaluated: dict[_Variant, str] = {}
        changes = changes or {}
        for task_name, task in self.tasks.items():
            _change(task, changes.get("", {}))
            _change(task, changes.get(task_name, {}))
            if seeds is not None:
                task["seeds"] = dict.fromkeys(task["seeds"], seeds)

    def runs(self, exhibits: Collection[str], tasks: Collection[str] | None = None) -> list[Run]:
        """Each run once. Table 1 and the first seeds come first, so results are useful early."""
        exhibited: dict[tuple[str, str], list[_Variant]] = {}
        arguments: dict[_Variant, _Arguments] = {}
        for exhibit in exhibits:
            for name in self._tasks_in(exhibit, tasks):
                variant_arguments = self._variants(exhibit, name)
                exhibited[exhibit, name] = list(variant_arguments)
                arguments |= variant_arguments
        configs = self._configs(arguments)

        ranks: dict[_Key, int] = {}
        for (exhibit, name), variants in exhibited.items():
            # A seed of the other tables comes after the next seed of Table 1.
            delay = 0 if exhibit in ("table 1", "figure 2") else 1
            for variant in variants:
                by_size = self._n_seeds_by_size(exhibit, name, configs[variant])
                for size, n_seeds in by_size.items():
                    for seed in range(1, n_seeds + 1):
                        key = _Key(name, variant.name, seed, size)
                        rank = seed + delay
                        ranks[key] = min(ranks.get(key, rank), rank)
        keys = sorted(ranks, key=lambda key: ranks[key])
        return [self._run(key, configs[_Variant(key.task, key.variant)]) for key in keys]

    def _tasks_in(self, exhibit: str, tasks: Collection[str] | None) -> Iterator[str]:
        """The names of the tasks, of `tasks` or all, for which the plan has runs of an exhibit."""
        for name, task in self.tasks.items():
            if tasks and name not in tasks:
                continue
            if name in TABLES[exhibit] and task["seeds"].get(exhibit):
                yield name

    def _variants(self, exhibit: str, name: str) -> dict[_Variant, _Arguments]:
        """The variants of a task that an exhibit compares."""
        shared: _Arguments = {}
        if exhibit == TRANSFORMER:
            if self.transformer is None:
                raise ConfigurationError(f"expected a transformer in the plan, for {exhibit}")
            shared["elmo"] = {"transformer": self.transformer["settings"]}
        variants = {}
        for variant, arguments in variants_of(exhibit, name).items():
            variants[_Variant(name, variant)] = {**arguments, **shared}
        return variants

    def _n_seeds_by_size(self, exhibit: str, name: str, config: str) -> dict[int | None, int]:
        """The number of seeds for each size of the training set; `None` is the whole set."""
        task = self.tasks[name]
        n_seeds = task["seeds"][exhibit]
        if exhibit != "figure 1":
            return {None: n_seeds}
        # The points for the whole training set are the runs of Table 1.
        by_size: dict[int | None, int] = {None: max(n_seeds, task["seeds"].get("table 1", 0))}
        total = size_of(Path(json.loads(config)["train_data_path"]))
        for size in task["sizes"]:
            if total is None or size < total:
                by_size[size] = n_seeds
        return by_size

    def _configs(self, arguments: dict[_Variant, _Arguments]) -> dict[_Variant, str]:
        """
        The configs of at least these variants as JSON. New ones are evaluated in one pass, because
        each pass reads Jsonnet's library again.
        """
        new = [variant for variant in arguments if variant not in self._evaluated]
        calls = [self._template_call(variant.task, arguments[variant]) for variant in new]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "variants.jsonnet")
            file.write_text(f"[{', '.join(calls)}]", encoding="utf-8")
            evaluated = json.loads(evaluate_file(str(file), self.variables))
        for variant, config in zip(new, evaluated, strict=True):
            overridden = with_overrides(config, self.tasks[variant.task]["overrides"])
            self._evaluated[variant] = json.dumps({**overridden, "evaluate_on_test": True})
        return self._evaluated

    def _template_call(self, name: str, arguments: _Arguments) -> str:
        """The call of a task's template in Jsonnet, with the plan's and a variant's arguments."""
        merged = dict(self.tasks[name]["arguments"])
        for key, value in arguments.items():
            if isinstance(value, dict):
                # `elmo` may be in both.
                value = {**merged.get(key, {}), **value}
            merged[key] = value
        template = json.dumps(str(TRAINING_CONFIGS / "lib" / f"{name}.libsonnet"))
        passed = ", ".join(f"{key}={json.dumps(value)}" for key, value in merged.items())
        return f"(import {template})({passed})"

    def _run(self, key: _Key, text: str) -> Run:
        task = self.tasks[key.task]
        overrides = dict(task["overrides"])
        size_suffix = ""
        if key.size is not None:
            size_suffix = f"-{key.size}"
            size_overrides = task["overrides_by_size"].get(str(key.size), {})
            overrides |= size_overrides
            text = json.dumps(with_overrides(json.loads(text), size_overrides))
        config = json.loads(text)
        inputs = self.inputs(config)
        source = Path(config["train_data_path"])
        if key.size is not None:
            subset = write_subset(source, key.size, self.results / "subsets")
            config["train_data_path"] = str(subset)
        training_size = None
        if key.task in TABLES["figure 1"]:
            training_size = key.size or size_of(source)
        patience = None
        if self.must_converge:
            patience = config["trainer"].get("patience")
        return Run(
            **key._asdict(),
            folder=self.results / key.task / key.variant / f"{key.seed}{size_suffix}",
            config={**config, **dict.fromkeys(_SEEDS, key.seed)},
            settings={"data": task["data"], "arguments": task["arguments"], "overrides": overrides},
            training_size=training_size,
            digest=text_digest(f"{self._without_roots(text)}{size_suffix}")[:16],
            inputs=inputs,
            patience=patience,
        )

    def _without_roots(self, config: str) -> str:
        """A config as JSON in which paths begin with the names of the folders of data and biLM."""
        for name, root in self._roots().items():
            config = config.replace(json.dumps(f"{root}/")[:-1], f'"{name}/')
        return config

    def inputs(self, config: Any) -> dict[str, str]:
        """The digests of the data and biLM files that a config names and that exist."""
        digests = {}
        for name, root in self._roots().items():
            for path in sorted(set(strings_of(config))):
                if path.startswith(f"{root}/") and Path(path).exists():
                    digests[name + path.removeprefix(root)] = digest_of(Path(path))
        return digests

    def _roots(self) -> dict[str, str]:
        """The folders of the data and the biLM."""
        return {
            "data": self.variables["ELMO_TASKS_DATA"],
            "biLM": self.variables["ELMO_TASKS_BILM"],
        }

    def notes(self, tasks: Collection[str]) -> list[str]:
        """The data and settings of some tasks."""
        lines = [f"biLM: {self.bilm}."]
        if self.has_small_data:
            sample = "the included sample data, to try things out. Do not compare with the paper."
            lines.append(f"Data: {sample}")
        for name, task in self.tasks.items():
            if name not in tasks:
                continue
            line = f"{TASKS[name].title}: {task['data']}"
            settings = {key: task[key] for key in ("arguments", "overrides") if task[key]}
            if settings:
                line += f"; `{json.dumps(settings)}`"
            lines.append(f"{line}.")
        return lines


def _change(task: dict[str, Any], changed: dict[str, dict[str, Any]]) -> None:
    """Applies `overrides` and `arguments` that take precedence over all of a plan's."""
    for key, value in changed.items():
        task[key] = {**task[key], **value}
    overrides_by_size = {}
    for size, overrides in task["overrides_by_size"].items():
        overrides_by_size[size] = {**overrides, **changed.get("overrides", {})}
    task["overrides_by_size"] = overrides_by_size


@lru_cache
def digest_of(path: Path) -> str:
    """
    The first 16 hexadecimal digits of the SHA-256 of a file, or of a folder's file names and their
    digests.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        digests = {file.relative_to(path).as_posix(): digest_of(file) for file in files}
        return text_digest(json.dumps(digests, sort_keys=True))[:16]
    return file_digest(path)[:16]


@lru_cache
def size_of(source: Path) -> int | None:
    """The number of items of a training set; `None` if it does not exist here."""
    if not source.exists():
        return None
    return len(_items(source))


def write_subset(source: Path, size: int, folder: Path) -> Path:
    """
    Writes `size` items of a training set in their order: always the same ones, all included in
    larger subsets.
    """
    target = folder / f"{source.parent.name}-{size}{source.suffix or '.gold_conll'}"
    if source.exists() and not target.exists():
        items = _items(source)
        # By the digest of the index, not of the text, so equal pairs are not chosen together.
        order = sorted(range(len(items)), key=lambda index: text_digest(str(index)))
        chosen = [items[index] for index in sorted(order[:size])]
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as temporary:
            temporary.write_text("".join(chosen), "utf-8")
    return target


def _items(source: Path) -> list[str]:
    """
    The pairs of SNLI that have a label, or the sentences of CoNLL-2012 that have a predicate, as
    text of a file.
    """
    if source.suffix == ".jsonl":
        return [f"{json.dumps(pair)}\n" for _, pair in labelled_pairs(str(source))]
    sentences = []
    for _, rows in annotated_sentences(str(source)):
        lines = [" ".join(columns) + "\n" for _, columns in rows]
        sentences.append("".join(lines) + "\n")
    return sentences
