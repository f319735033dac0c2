"""A plan: which tasks are trained with which settings and how many seeds, and for which tables."""

import json
import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from allennlp.common.params import with_overrides

from elmo_tasks.configs import config_variables, evaluate_file, strings_of
from elmo_tasks.data.dataset_readers.snli_reader import labelled_pairs
from elmo_tasks.data.dataset_readers.srl_reader import annotated_sentences
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import file_digest, text_digest
from elmo_tasks.replication.paper import TABLES, TASKS, variants_of
from elmo_tasks.shipped import DEFAULT_BILM, TRAINING_CONFIGS
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


# A task and a variant.
_Call = tuple[str, str]


@dataclass(frozen=True)
class Run:
    """
    A training: `config` is trained in `folder`, and its scores are then written to `<folder>.json` next to it.

    `digest` identifies the config, regardless of its folders. `inputs` has the digests of the files that the
    config names, if they exist here: a checkout shows published scores without the data.
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
        path = Path(name) if name.endswith(".jsonnet") else TRAINING_CONFIGS / f"{name}.jsonnet"
        content = json.loads(evaluate_file(str(path), {}))
        chosen = {"DATA": data, "BILM": bilm or content.get("bilm"), "GLOVE": content.get("glove")}
        environment = dict(os.environ)
        environment |= {f"ELMO_TASKS_{name}": value for name, value in chosen.items() if value}
        if path.stem != "paper" and not environment.get("ELMO_TASKS_DATA"):
            # Only the paper's plan, which names no data, may be tried on the included sample data.
            environment["ELMO_TASKS_DATA"] = "data"
        self.has_small_data = not environment.get("ELMO_TASKS_DATA")
        self.bilm = environment.get("ELMO_TASKS_BILM") or DEFAULT_BILM
        self.variables = config_variables(environment)
        self.variables["ELMO_TASKS_BILM"] = str(pretrained_files(self.variables["ELMO_TASKS_BILM"])[0].parent)
        self.results = results.absolute()
        self.tasks: dict[str, dict[str, Any]] = {
            task["task"]: {"arguments": {}, "overrides": {}, "sizes": [], **task} for task in content["tasks"]
        }
        self._evaluated: dict[_Call, str] = {}
        for task_name, task in self.tasks.items():
            for changed in ((changes or {}).get("", {}), (changes or {}).get(task_name, {})):
                for key, value in changed.items():
                    task[key] = {**task[key], **value}
            if seeds is not None:
                task["seeds"] = dict.fromkeys(task["seeds"], seeds)

    def runs(self, exhibits: Collection[str], tasks: Collection[str] | None = None) -> list[Run]:
        """Each run once. Table 1 and the first seeds come first, so useful results are ready early."""
        exhibited = {
            (exhibit, name): variants_of(exhibit, name)
            for exhibit, name in product(exhibits, self.tasks)
            if name in TABLES[exhibit] and name in (tasks or self.tasks) and self.tasks[name]["seeds"].get(exhibit)
        }
        calls: dict[_Call, dict[str, Any]] = {}
        for (_, name), variants in exhibited.items():
            calls |= {(name, variant): arguments for variant, arguments in variants.items()}
        configs = self._configs(calls)

        ranks: dict[_Key, int] = {}
        for (exhibit, name), variants in exhibited.items():
            delay = 0 if exhibit in ("table 1", "figure 2") else 1
            for variant in variants:
                for size, n_seeds in self._seeds(exhibit, name, configs[name, variant]).items():
                    for seed in range(1, n_seeds + 1):
                        key = _Key(name, variant, seed, size)
                        ranks[key] = min(ranks.get(key, seed + delay), seed + delay)
        return [self._run(key, configs[key.task, key.variant]) for key in sorted(ranks, key=lambda key: ranks[key])]

    def _seeds(self, exhibit: str, name: str, config: str) -> dict[int | None, int]:
        """The number of seeds for each size of the training set; `None` is the whole set."""
        seeds = self.tasks[name]["seeds"]
        if exhibit != "figure 1":
            return {None: seeds[exhibit]}
        total = size_of(Path(json.loads(config)["train_data_path"]))
        sizes = [size for size in self.tasks[name]["sizes"] if total is None or size < total]
        # The points for the whole training set are the runs of Table 1.
        return {None: max(seeds[exhibit], seeds.get("table 1", 0)), **dict.fromkeys(sizes, seeds[exhibit])}

    def _configs(self, calls: dict[_Call, dict[str, Any]]) -> dict[_Call, str]:
        """The config of each variant as JSON, evaluated in one pass because each pass reads Jsonnet's library again."""
        new = {call: arguments for call, arguments in calls.items() if call not in self._evaluated}
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "variants.jsonnet")
            expressions = [self._expression(name, arguments) for (name, _), arguments in new.items()]
            file.write_text(f"[{', '.join(expressions)}]", encoding="utf-8")
            evaluated = json.loads(evaluate_file(str(file), self.variables))
        for call, config in zip(new, evaluated, strict=True):
            overridden = with_overrides(config, self.tasks[call[0]]["overrides"])
            self._evaluated[call] = json.dumps({**overridden, "evaluate_on_test": True})
        return self._evaluated

    def _expression(self, name: str, arguments: dict[str, Any]) -> str:
        """The call of a task's template in Jsonnet, with the arguments of the plan and of a variant."""
        given = dict(self.tasks[name]["arguments"])
        for key, value in arguments.items():
            # Merges `elmo` from both.
            given[key] = {**given.get(key, {}), **value} if isinstance(value, dict) else value
        template = json.dumps(str(TRAINING_CONFIGS / "lib" / f"{name}.libsonnet"))
        return f"(import {template})({', '.join(f'{key}={json.dumps(value)}' for key, value in given.items())})"

    def _run(self, key: _Key, text: str) -> Run:
        task, config = self.tasks[key.task], json.loads(text)
        inputs = self.inputs(config)
        part = "" if key.size is None else f"-{key.size}"
        source = Path(config["train_data_path"])
        if key.size is not None:
            config["train_data_path"] = str(write_subset(source, key.size, self.results / "subsets"))
        # Paths in the folders begin with the names of the folders.
        named = text
        for root, called in self._roots():
            named = named.replace(json.dumps(f"{root}/")[:-1], f'"{called}/')
        return Run(
            **key._asdict(),
            folder=self.results / key.task / key.variant / f"{key.seed}{part}",
            config={**config, **dict.fromkeys(_SEEDS, key.seed)},
            settings={name: task[name] for name in ("data", "arguments", "overrides")},
            training_size=(key.size or size_of(source)) if key.task in TABLES["figure 1"] else None,
            digest=text_digest(f"{named}{part}")[:16],
            inputs=inputs,
        )

    def inputs(self, config: Any) -> dict[str, str]:
        """The digests of the data and biLM files that a config names and that exist."""
        found = {}
        for root, called in self._roots():
            for path in sorted(set(strings_of(config))):
                if path.startswith(f"{root}/") and Path(path).exists():
                    found[called + path.removeprefix(root)] = digest_of(Path(path))
        return found

    def _roots(self) -> list[tuple[str, str]]:
        return [(self.variables["ELMO_TASKS_DATA"], "data"), (self.variables["ELMO_TASKS_BILM"], "biLM")]

    def notes(self, tasks: Collection[str]) -> list[str]:
        """The data and settings of some tasks."""
        found = [f"biLM: {self.bilm}."]
        if self.has_small_data:
            found.append("Data: the included sample data, to try things out. Do not compare with the paper.")
        for name in (name for name in self.tasks if name in tasks):
            task = self.tasks[name]
            settings = {key: task[key] for key in ("arguments", "overrides") if task[key]}
            found.append(
                f"{TASKS[name].title}: {task['data']}" + (f"; `{json.dumps(settings)}`" if settings else "") + "."
            )
        return found


@lru_cache
def digest_of(path: Path) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a file, or of a folder's file names and digests."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        digests = {file.relative_to(path).as_posix(): digest_of(file) for file in files}
        return text_digest(json.dumps(digests, sort_keys=True))[:16]
    return file_digest(path)[:16]


@lru_cache
def size_of(source: Path) -> int | None:
    """The number of items of a training set; `None` if it does not exist here."""
    return len(_items(source)) if source.exists() else None


def write_subset(source: Path, size: int, folder: Path) -> Path:
    """Writes `size` items of a training set in their order: always the same ones, all included in larger subsets."""
    target = folder / f"{source.parent.name}-{size}{source.suffix or '.gold_conll'}"
    if source.exists() and not target.exists():
        items = _items(source)
        # Ordered by the digest of the index, not of the text, so equal pairs are not chosen together.
        order = sorted(range(len(items)), key=lambda index: text_digest(str(index)))
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(target) as part:
            part.write_text("".join(items[index] for index in sorted(order[:size])), "utf-8")
    return target


def _items(source: Path) -> list[str]:
    """The pairs of SNLI that have a label, or the sentences of CoNLL-2012 that have a predicate, as text of a file."""
    if source.suffix == ".jsonl":
        return [f"{json.dumps(pair)}\n" for _, pair in labelled_pairs(str(source))]
    sentences = (rows for _, rows in annotated_sentences(str(source)))
    return ["\n".join(" ".join(columns) for _, columns in rows) + "\n\n" for rows in sentences]
