"""A plan: which tasks are trained with which settings and how many seeds, and for which tables."""

import json
import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from allennlp.common.params import with_overrides

from elmo_tasks.configs import config_variables, evaluate_file, strings_of
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.json_files import file_digest, text_digest
from elmo_tasks.replication.paper import TABLES, TASKS, variants_of
from elmo_tasks.shipped import DEFAULT_BILM, TRAINING_CONFIGS
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["Plan", "Run", "digest_of", "size_of", "write_subset"]

_SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")
_Key = tuple[str, str, int, int | None]
# The columns of a CoNLL-2012 line in a sentence without a predicate.
_COLUMNS_WITHOUT_PREDICATE = 12


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
        given = {"DATA": data, "BILM": bilm or content.get("bilm"), "GLOVE": content.get("glove")}
        given = {f"ELMO_TASKS_{key}": value for key, value in given.items() if value}
        # Only the paper's plan, which names no data, may be tried on the included sample data.
        default = {} if path.stem == "paper" else {"ELMO_TASKS_DATA": "data"}
        set_in_environment = {key: value for key, value in os.environ.items() if value}
        self.has_small_data = "ELMO_TASKS_DATA" not in {**default, **set_in_environment, **given}
        self.variables = config_variables({**default, **set_in_environment, **given})
        self.variables["ELMO_TASKS_BILM"] = str(pretrained_files(self.variables["ELMO_TASKS_BILM"])[0].parent)
        self.bilm = given.get("ELMO_TASKS_BILM") or os.environ.get("ELMO_TASKS_BILM") or DEFAULT_BILM
        self.results = results.absolute()
        self.tasks: dict[str, dict[str, Any]] = {task["task"]: task for task in content["tasks"]}
        for task_name, task in self.tasks.items():
            for changed in ((changes or {}).get("", {}), (changes or {}).get(task_name, {})):
                for key, value in changed.items():
                    task[key] = {**task.get(key, {}), **value}
            if seeds is not None:
                task["seeds"] = dict.fromkeys(task["seeds"], seeds)

    def runs(self, exhibits: Collection[str], tasks: Collection[str] | None = None) -> list[Run]:
        """Each run once. Table 1 and the first seeds come first, so useful results are ready early."""
        ranks: dict[_Key, int] = {}
        calls: dict[tuple[str, str], dict[str, Any]] = {}
        for exhibit in exhibits:
            later = exhibit not in ("table 1", "figure 2")
            for name in (name for name in self.tasks if name in TABLES[exhibit] and name in (tasks or self.tasks)):
                seeds = self.tasks[name]["seeds"]
                of_sizes: dict[int | None, int] = {None: seeds.get(exhibit, 0)}
                if exhibit == "figure 1" and of_sizes[None]:
                    of_sizes |= dict.fromkeys(self._sizes(name), of_sizes[None])
                    # The points for the whole training set are the runs of Table 1.
                    of_sizes[None] = max(of_sizes[None], seeds.get("table 1", 0))
                for variant, arguments in variants_of(exhibit, name).items() if of_sizes[None] else ():
                    calls[name, variant] = arguments
                    for size, n_seeds in of_sizes.items():
                        for seed in range(1, n_seeds + 1):
                            key = (name, variant, seed, size)
                            ranks[key] = min(ranks.get(key, seed + later), seed + later)
        configs = self._configs(calls)
        return [self._run(key, configs[key[:2]]) for key in sorted(ranks, key=lambda key: ranks[key])]

    def _sizes(self, name: str) -> list[int]:
        """The sizes of subsets for Figure 1 that are smaller than the whole training set."""
        source = Path(json.loads(self._configs({(name, ""): {}})[name, ""])["train_data_path"])
        total = size_of(source)
        return [size for size in self.tasks[name].get("sizes", []) if total is None or size < total]

    def _configs(self, calls: dict[tuple[str, str], dict[str, Any]]) -> dict[tuple[str, str], str]:
        """The config of each variant as JSON, evaluated in one pass because each pass reads Jsonnet's library again."""
        parts = []
        for (name, _), arguments in calls.items():
            given = dict(self.tasks[name].get("arguments", {}))
            for key, value in arguments.items():
                # Merges `elmo` from both.
                given[key] = {**given.get(key, {}), **value} if isinstance(value, dict) else value
            template = json.dumps(str(TRAINING_CONFIGS / "lib" / f"{name}.libsonnet"))
            parts.append(
                f"(import {template})({', '.join(f'{key}={json.dumps(value)}' for key, value in given.items())})"
            )
        with tempfile.NamedTemporaryFile("w", suffix=".jsonnet") as file:
            file.write(f"[{', '.join(parts)}]")
            file.flush()
            evaluated = json.loads(evaluate_file(file.name, self.variables))
        configs = {}
        for call, config in zip(calls, evaluated, strict=True):
            overridden = with_overrides(config, self.tasks[call[0]].get("overrides", {}))
            configs[call] = json.dumps({**overridden, "evaluate_on_test": True})
        return configs

    def _run(self, key: _Key, text: str) -> Run:
        name, variant, seed, size = key
        task = self.tasks[name]
        part = "" if size is None else f"-{size}"
        config = json.loads(text)
        source = Path(config["train_data_path"])
        if size is not None:
            config["train_data_path"] = str(write_subset(source, size, self.results / "subsets"))
        # Paths in the folders begin with the names of the folders.
        named = text
        for root, called in self._roots():
            named = named.replace(json.dumps(f"{root}/")[:-1], f'"{called}/')
        return Run(
            name,
            variant,
            seed,
            size,
            folder=self.results / name / variant / f"{seed}{part}",
            config={**config, **dict.fromkeys(_SEEDS, seed)},
            settings={"data": task["data"], **{part: task.get(part, {}) for part in ("arguments", "overrides")}},
            training_size=(size or size_of(source)) if name in TABLES["figure 1"] else None,
            digest=text_digest(f"{named}{part}")[:16],
            inputs=self.inputs(json.loads(text)),
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
            settings = {key: task[key] for key in ("arguments", "overrides") if task.get(key)}
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
    """The lines of SNLI that have a label, or the sentences of CoNLL-2012's columns that have a predicate."""
    if source.suffix == ".jsonl":
        lines = source.read_text("utf-8").split("\n")
        return [f"{line}\n" for line in lines if line.strip() and json.loads(line).get("gold_label") != "-"]
    sentences = []
    for file in sorted(source.rglob("*gold_conll")) if source.is_dir() else [source]:
        for block in file.read_text("utf-8").split("\n\n"):
            rows = [line for line in block.split("\n") if line.strip() and not line.startswith("#")]
            if rows and len(rows[0].split()) > _COLUMNS_WITHOUT_PREDICATE:
                sentences.append("\n".join(rows) + "\n\n")
    return sentences
