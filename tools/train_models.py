"""
Trains the models in `models/` and writes their cards: `make models`, about four hours on two cores.

`ner`, `pos` and `coref` are runs of configs of their own, `ner` the best of three seeds on the dev
set, and the others the runs of Table 1 with ELMo of the plan `open` with seed 1. `coref` continues
such a run, with what `tools/coref_news_data.py` writes. What `allennlp train` made is reduced to
half precision, without the biLM's weights, which the package has. The card has the measured scores,
speed and memory. A run, a reduced model or a measurement that exists is not made again.
"""

import argparse
import csv
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
_OF_PLAN = "the run with ELMo of the plan `open` (`training_configs/open.jsonnet`)"
# For each task: what its card says.
CARDS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)


def reduce(run: Path, folder: Path, roots: dict[str, str]) -> None:
    """Writes the model of a finished run to a folder that `load_archive` accepts."""
    from elmo_tasks.files.json_files import file_digest
    from elmo_tasks.files.shipped import DEFAULT_BILM, PRETRAINED

    config = json.loads((run / "config.json").read_text())
    # A tagger has its biLM inside its only embedder.
    model = config["model"]
    # Loading needs neither first weights nor a vocabulary from elsewhere.
    model.pop("initializer", None)
    config.pop("vocabulary", None)
    owner = model if "bilm" in model else model["text_field_embedder"]["token_embedders"]["elmo"]
    owner["bilm"] = {
        "options": owner["bilm"]["options"],
        "included": DEFAULT_BILM,
        "digest": file_digest(PRETRAINED / DEFAULT_BILM / "weights.hdf5")[:16],
    }
    text = json.dumps(config, indent=1)
    for path, name in roots.items():
        text = text.replace(path, name)
    shutil.copytree(
        run / "vocabulary", folder / "vocabulary", ignore=shutil.ignore_patterns(".lock")
    )
    shutil.copy(run / "meta.json", folder)
    (folder / "config.json").write_text(text)
    state = torch.load(run / "best.th", map_location="cpu", weights_only=True)
    halves = {
        k: v.half() if v.is_floating_point() else v
        for k, v in state.items()
        if ".bilm." not in f".{k}"
    }
    torch.save(halves, folder / "weights.th")


def measure(archive: Path, data: str) -> dict[str, Any]:
    """
    Speed, memory, predictions of the first 200 instances of a file, and for a reduced model also
    its score.
    """
    from allennlp.commands.evaluate import evaluate_from_archive
    from allennlp.models import load_archive
    from allennlp.predictors import Predictor
    from other_text import tag_accuracies

    from elmo_tasks.paper.train import surroundings
    from elmo_tasks.predictors.interpretation import texts_of
    from elmo_tasks.predictors.task import tokens_of

    predictor: Any = Predictor.from_archive(load_archive(str(archive)))
    instances = list(predictor._dataset_reader.read(data))[:200]
    n_words = sum(
        len(tokens_of(instance[name])) for instance in instances for name in texts_of(instances[0])
    )
    start = time.process_time()
    predictions = list(
        chain.from_iterable(
            predictor.predict_batch_instance(instances[first : first + 32])
            for first in range(0, len(instances), 32)
        )
    )
    seconds = time.process_time() - start
    metrics: dict[str, Any] = {}
    if archive.parent == MODELS and data.endswith(".conllu"):
        # A pair of tags that is not in the training data has no label.
        content = Path(data).read_text("utf-8")
        metrics["accuracy"] = tag_accuracies(content, archive)["both"] / 100
    elif archive.parent == MODELS:
        metrics = evaluate_from_archive(str(archive), data)
    # Kilobytes on Linux.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {
        "metrics": metrics,
        "words_per_second": round(n_words / seconds),
        "memory_mb": round(memory),
        "machine": surroundings()["machine"],
        "predictions": predictions,
    }


def furthest(one: Any, other: Any) -> float:
    """
    The largest difference of two numbers at the same place; texts and lists of other lengths are
    not compared.
    """
    if isinstance(one, dict):
        return max(
            (furthest(one[key], other[key]) for key in one.keys() & other.keys()), default=0.0
        )
    if isinstance(one, list) and len(one) == len(other):
        return max((furthest(*pair) for pair in zip(one, other, strict=True)), default=0.0)
    return abs(one - other) if isinstance(one, float) and isinstance(other, float) else 0.0


def processor() -> str:
    """The instructions that decide about the speed of products."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return ", ".join(
        flag
        for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
        if flag in flags
    )


def measured(archive: Path, data: str, file: Path) -> dict[str, Any]:
    if not file.exists():
        command = [sys.executable, __file__, "--measure", str(archive), data, str(file)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", default=list(CARDS))
    parser.add_argument(
        "--data", default="output/open", help="what `allennlp elmo-data open --to` wrote"
    )
    parser.add_argument("--runs", type=Path, default=Path("output/models"))
    parser.add_argument(
        "--measure", nargs=3, metavar=("ARCHIVE", "DATA", "FILE"), help=argparse.SUPPRESS
    )
    arguments = parser.parse_args()
    if arguments.measure:
        archive, data, file = arguments.measure
        Path(file).write_text(json.dumps(measure(Path(archive), data)))
        return
    from elmo_tasks.paper.plan import Plan
    from elmo_tasks.paper.train import train_all

    plan = Plan("open", results=arguments.runs, data=arguments.data, seeds=1)
    runs = [run for run in plan.runs(["table 1"], arguments.tasks) if run.variant != "baseline"]
    for run, problem in train_all([run for run in runs if CARDS[run.task].get("continues")]):
        if problem:
            raise RuntimeError(f"{run.name} {problem}")
    of_tasks = [own_runs(task, plan) for task in arguments.tasks if "config" in CARDS[task]] + [
        [run] for run in runs if "config" not in CARDS[run.task]
    ]
    roots = {plan.variables["ELMO_TASKS_DATA"]: "data/open", str(ROOT): "."}
    for runs in of_tasks:
        for run, problem in train_all(runs):
            if problem:
                raise RuntimeError(f"{run.name} {problem}")
        run = max(runs, key=lambda run: json.loads(run.file.read_text())["dev"])
        folder, trained = MODELS / run.task, run.folder / "run"
        if not (run.folder / "half.json").exists():
            # The model of an earlier training is replaced.
            shutil.rmtree(folder, ignore_errors=True)
            reduce(trained, folder, roots)
        data = run.config.get("test_data_path") or run.config["validation_data_path"]
        full = measured(trained, data, run.folder / "full.json")
        half = measured(folder, data, run.folder / "half.json")
        write_card(run, folder, full, half, [each.file for each in runs])


def studied(task: str, study: str, title: str, seed: int) -> list[str]:
    """
    A table with the rows of a study in `results/studies.csv`, if it has any of a model: those of
    the seed of the model, and the mean and deviation of all seeds.
    """
    values: dict[str, dict[str, float]] = {}
    with open(ROOT / "results/studies.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["study"], row["task"], row["model"]) == (study, task, f"models/{task}"):
                values.setdefault(row["measure"], {})[row["seed"]] = float(row["value"])
    if not values:
        return []
    n_seeds = max(map(len, values.values()))
    head = [f"| {title} | |", "|---|---|"]
    if n_seeds > 1:
        head = [f"| {title} | this model | {n_seeds} seeds |", "|---|---|---|"]
    rows = []
    for measure, of_seeds in values.items():
        cells = [f"{of_seeds.get(str(seed), of_seeds.get('', 0.0)):.1f}"]
        if n_seeds > 1:
            cells.append(mean_and_deviation(list(of_seeds.values())))
        rows.append(f"| {measure} | {' | '.join(cells)} |")
    return [*head, *rows, ""]


def mean_and_deviation(values: list[float]) -> str:
    return f"{mean(values):.1f} ± {stdev(values):.1f}" if len(values) > 1 else ""


def own_runs(task: str, plan: Any) -> list[Any]:
    """The runs of a model with a config of its own, which is in no table."""
    from elmo_tasks.configs import evaluate_file
    from elmo_tasks.files.json_files import text_digest
    from elmo_tasks.paper.plan import Run

    name = CARDS[task]["config"]
    text = evaluate_file(str(Path(__file__).with_name(f"{name}.jsonnet")), plan.variables)
    runs = []
    for seed in range(1, CARDS[task].get("n_seeds", 1) + 1):
        config = {
            **json.loads(text),
            **dict.fromkeys(("random_seed", "numpy_seed", "pytorch_seed"), seed),
        }
        run = Run(
            task,
            name,
            seed=seed,
            size=None,
            folder=plan.results / task / name / str(seed),
            config={**config, "evaluate_on_test": True},
            settings={"data": CARDS[task]["corpora"]},
            training_size=None,
            digest=text_digest(text)[:16],
            inputs=plan.inputs(config),
        )
        runs.append(run)
    return runs


def write_card(
    run: Any, folder: Path, full: dict[str, Any], half: dict[str, Any], files: list[Path]
) -> None:
    from elmo_tasks import TrainedTask
    from elmo_tasks.paper.numbers import TASKS

    card, task = CARDS[run.task], TrainedTask(folder)
    name, metric, part = TASKS[run.task].score, TASKS[run.task].metric, TASKS[run.task].split
    published = list((ROOT / "results/open" / run.task / run.variant).glob("?.json"))
    scores = sorted(json.loads(path.read_text())[part] for path in published or files)
    runs = f"{len(scores)} {'published runs' if published else 'runs'}"
    seeds = card.get("seeds") or f"{scores[0]:.1f} to {scores[-1]:.1f} in {runs}"
    example = task.predictor.examples[0]
    result = json.dumps(task(*example), indent=1, ensure_ascii=False)
    megabytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    difference = furthest(full["predictions"], half["predictions"])
    call = ", ".join(json.dumps(text, ensure_ascii=False) for text in example)
    front = {
        "library_name": "elmo_tasks",
        "license": card["license"],
        "language": "en",
        "tags": "[elmo]",
    }
    if "pipeline_tag" in card:
        front["pipeline_tag"] = card["pipeline_tag"]
    ours, whole = 100 * half["metrics"][metric], json.loads(run.file.read_text())[part]
    changed = f"numbers in predictions differ by at most {difference:.4f}"
    trained = f"`tools/{run.variant}.jsonnet`" if "config" in card else _OF_PLAN
    best = f", the best of {card['n_seeds']} on the dev set" if "n_seeds" in card else ""
    lines = [
        "---",
        *(f"{key}: {value}" for key, value in front.items()),
        "---",
        f"# {task.predictor.title}",
        "",
        task.predictor.about,
        "",
        "```python",
        "from elmo_tasks import TrainedTask",
        "",
        f'task = TrainedTask("{run.task}")',
        f"print(task({call}))",
        "```",
        "",
        "```json",
        result,
        "```",
        "",
        "| | |",
        "|---|---|",
        f"| data | {run.settings['data']}: {card['data']} |",
        f"| {name}, {part} set | {ours:.1f}; {seeds} |",
        f"| speed | {half['words_per_second']:,} words per CPU second, one thread, {half['machine']} ({processor()}) |",
        f"| memory | {half['memory_mb']:,} MB with Python, torch and AllenNLP |",
        f"| size | {megabytes:.1f} MB, without the biLM `small-open` that the package has |",
        f"| whole archive of the training | {name} {whole:.2f} (here {ours:.2f}); {changed} |",
        "",
        *studied(
            run.task, "other text", "On text of other kinds (`tools/other_text.py`)", run.seed
        ),
        *studied(run.task, "reliability", "Found names on the dev set, by probability", run.seed),
        f"**Bad at** {card['bad_at']}",
        "",
        f"Trained by `make models`: {trained}, seed {run.seed}{best}.",
        "",
    ]
    (folder / "README.md").write_text("\n".join(lines), "utf-8")


if __name__ == "__main__":
    main()
