"""
Trains the models in `models/` and writes their cards: `make models`.

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
from pathlib import Path
from statistics import mean, stdev
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from elmo_tasks.paper.plan import Plan, Run

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "models"
_TRAINED_BY_PLAN = "the run with ELMo of the plan `open` (`training_configs/open.jsonnet`)"
# The instructions that decide about the speed of products.
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
# For each task: what its card says.
CARDS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)


def write_reduced(run: Path, folder: Path, roots: dict[str, str]) -> None:
    """
    Writes the model of a finished run to a folder that `load_archive` accepts. `roots` maps paths
    of this machine to what replaces them in the config.
    """
    from elmo_tasks.files.json_files import file_digest
    from elmo_tasks.files.shipped import DEFAULT_BILM, PRETRAINED

    config = json.loads((run / "config.json").read_text())
    model = config["model"]
    # Loading needs neither first weights nor a vocabulary from elsewhere.
    model.pop("initializer", None)
    config.pop("vocabulary", None)
    owner = model
    if "bilm" not in model:
        # A tagger has its biLM inside its only embedder.
        owner = model["text_field_embedder"]["token_embedders"]["elmo"]
    owner["bilm"] = {
        "options": owner["bilm"]["options"],
        "included": DEFAULT_BILM,
        "digest": file_digest(PRETRAINED / DEFAULT_BILM / "weights.hdf5")[:16],
    }
    text = json.dumps(config, indent=1)
    for path, name in roots.items():
        text = text.replace(path, name)
    without_locks = shutil.ignore_patterns(".lock")
    shutil.copytree(run / "vocabulary", folder / "vocabulary", ignore=without_locks)
    shutil.copy(run / "meta.json", folder)
    (folder / "config.json").write_text(text)
    state = torch.load(run / "best.th", map_location="cpu", weights_only=True)
    reduced = {}
    for name, tensor in state.items():
        if ".bilm." in f".{name}":
            continue
        if tensor.is_floating_point():
            tensor = tensor.half()
        reduced[name] = tensor
    torch.save(reduced, folder / "weights.th")


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
    from elmo_tasks.predictors.interpretation import names_of_texts
    from elmo_tasks.predictors.tokens import tokens_of

    predictor: Any = Predictor.from_archive(load_archive(str(archive)))
    instances = list(predictor._dataset_reader.read(data))[:200]
    names = names_of_texts(instances[0])
    n_words = 0
    for instance in instances:
        n_words += sum(len(tokens_of(instance[name])) for name in names)
    predictions = []
    start = time.process_time()
    for first in range(0, len(instances), 32):
        predictions += predictor.predict_batch_instance(instances[first : first + 32])
    seconds = time.process_time() - start
    # Kilobytes on Linux. An evaluation holds a whole file in memory.
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    metrics: dict[str, Any] = {}
    if archive.parent == MODELS and data.endswith(".conllu"):
        # A pair of tags that is not in the training data has no label.
        content = Path(data).read_text("utf-8")
        metrics["accuracy"] = tag_accuracies(content, archive)["both"] / 100
    elif archive.parent == MODELS:
        metrics = evaluate_from_archive(str(archive), data)
    return {
        "metrics": metrics,
        "words_per_second": round(n_words / seconds),
        "memory_mb": round(memory),
        "machine": surroundings()["machine"],
        "predictions": predictions,
    }


def largest_difference(left: Any, right: Any) -> float:
    """
    The largest difference between two numbers at the same position in two JSON values. Texts, and
    lists of different lengths, are not compared.
    """
    pairs = []
    if isinstance(left, dict):
        pairs = [(left[key], right[key]) for key in left.keys() & right.keys()]
    elif isinstance(left, list) and len(left) == len(right):
        pairs = list(zip(left, right, strict=True))
    elif isinstance(left, float) and isinstance(right, float):
        return abs(left - right)
    return max((largest_difference(*pair) for pair in pairs), default=0.0)


def instructions() -> str:
    """The instructions of this processor among `_INSTRUCTIONS`, separated by commas."""
    flags = set(Path("/proc/cpuinfo").read_text().split())
    return ", ".join(flag for flag in _INSTRUCTIONS if flag in flags)


def measure_in_new_process(archive: Path, data: str, file: Path) -> dict[str, Any]:
    """
    The result of `measure` in a new process, so that the memory is that of one model; or what
    `file` has from an earlier call.
    """
    if not file.exists():
        command = [sys.executable, __file__, "--measure", str(archive), data, str(file)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    measurement: dict[str, Any] = json.loads(file.read_text())
    return measurement


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
    train_and_publish(arguments.tasks, arguments.data, arguments.runs)


def train_and_publish(tasks: list[str], data: str, results: Path) -> None:
    from elmo_tasks.paper.plan import Plan

    plan = Plan("open", results=results, data=data, seeds=1)
    plan_runs = {}
    for run in plan.runs(["table 1"], tasks):
        if run.variant != "baseline":
            plan_runs[run.task] = run
    train([run for run in plan_runs.values() if CARDS[run.task].get("continues")])
    roots = {plan.variables["ELMO_TASKS_DATA"]: "data/open", str(ROOT): "."}
    for task in tasks:
        if "config" in CARDS[task]:
            publish(own_runs(task, plan), roots)
    for run in plan_runs.values():
        if "config" not in CARDS[run.task]:
            publish([run], roots)


def train(runs: "list[Run]") -> None:
    from elmo_tasks.paper.train import train_all

    for run, problem in train_all(runs):
        if problem:
            raise RuntimeError(f"{run.name} {problem}")


def publish(runs: "list[Run]", roots: dict[str, str]) -> None:
    """Trains the runs of a task, and writes the model and the card of the best one."""
    train(runs)
    best = max(runs, key=score_on_dev)
    trained = best.folder / "run"
    folder = MODELS / best.task
    if not (best.folder / "half.json").exists():
        # The model of an earlier training is replaced.
        shutil.rmtree(folder, ignore_errors=True)
        write_reduced(trained, folder, roots)
    data = best.config.get("test_data_path") or best.config["validation_data_path"]
    full = measure_in_new_process(trained, data, best.folder / "full.json")
    half = measure_in_new_process(folder, data, best.folder / "half.json")
    write_card(best, folder, full, half, [run.file for run in runs])


def score_on_dev(run: "Run") -> float:
    return float(json.loads(run.file.read_text())["dev"])


def table_of_study(task: str, study: str, title: str, seed: int) -> list[str]:
    """
    A table of the rows that `results/studies.csv` has for a model in a study, or nothing: the
    values for the seed of the model, and the mean and deviation of all seeds.
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
    for measure, values_by_seed in values.items():
        value = values_by_seed.get(str(seed), values_by_seed.get(""))
        if value is None:
            # The measure is of other seeds only: its name has counts, which differ by seed.
            continue
        cells = [f"{value:.1f}"]
        if n_seeds > 1:
            cells.append(mean_and_deviation(list(values_by_seed.values())))
        rows.append(f"| {measure} | {' | '.join(cells)} |")
    return [*head, *rows, ""] if rows else []


def mean_and_deviation(values: list[float]) -> str:
    if len(values) < 2:
        return ""
    return f"{mean(values):.1f} ± {stdev(values):.1f}"


def own_runs(task: str, plan: "Plan") -> "list[Run]":
    """The runs of a model with a config of its own, which is in no table."""
    from elmo_tasks.configs import evaluate_file
    from elmo_tasks.files.json_files import text_digest
    from elmo_tasks.paper.plan import Run

    card = CARDS[task]
    name = card["config"]
    file = Path(__file__).with_name(f"{name}.jsonnet")
    text = evaluate_file(str(file), plan.variables)
    runs = []
    for seed in range(1, card.get("n_seeds", 1) + 1):
        seeds = {"random_seed": seed, "numpy_seed": seed, "pytorch_seed": seed}
        config = {**json.loads(text), **seeds}
        run = Run(
            task=task,
            variant=name,
            seed=seed,
            size=None,
            folder=plan.results / task / name / str(seed),
            config={**config, "evaluate_on_test": True},
            settings={"data": card["corpora"]},
            training_size=None,
            digest=text_digest(text)[:16],
            inputs=plan.inputs(config),
        )
        runs.append(run)
    return runs


def write_card(
    run: "Run", folder: Path, full: dict[str, Any], half: dict[str, Any], files: list[Path]
) -> None:
    """
    Writes the README of a model. `full` and `half` are the measurements of its training's archive
    and of the reduced one, and `files` has the scores of all its seeds.
    """
    from elmo_tasks import TrainedTask

    card = CARDS[run.task]
    task = TrainedTask(folder)
    example = task.predictor.examples[0]
    texts = [json.dumps(text, ensure_ascii=False) for text in example]
    call = f"print(task({', '.join(texts)}))"
    if len(call) > 100:
        lines_of_texts = "".join(f"        {text},\n" for text in texts)
        call = f"print(\n    task(\n{lines_of_texts}    )\n)"
    result = json.dumps(task(*example), indent=1, ensure_ascii=False)
    trained = _TRAINED_BY_PLAN
    if "config" in card:
        trained = f"`tools/{run.variant}.jsonnet`"
    best = ""
    if "n_seeds" in card:
        best = f", the best of {card['n_seeds']} on the dev set"
    lines = [
        *front_matter(card),
        f"# {task.predictor.title}",
        "",
        task.predictor.about,
        "",
        "```python",
        "from elmo_tasks import TrainedTask",
        "",
        f'task = TrainedTask("{run.task}")',
        call,
        "```",
        "",
        "```json",
        result,
        "```",
        "",
        "| | |",
        "|---|---|",
    ]
    for name, value in facts(run, folder, full, half, files).items():
        lines.append(f"| {name} | {value} |")
    lines.append("")
    on_other_text = "On text of other kinds (`tools/other_text.py`)"
    lines += table_of_study(run.task, "other text", on_other_text, run.seed)
    by_probability = "Found names on the dev set, by probability"
    lines += table_of_study(run.task, "reliability", by_probability, run.seed)
    lines += [
        f"**Bad at** {card['bad_at']}",
        "",
        f"Trained by `make models`: {trained}, seed {run.seed}{best}.",
        "",
    ]
    (folder / "README.md").write_text("\n".join(lines), "utf-8")


def front_matter(card: dict[str, Any]) -> list[str]:
    """What the Hugging Face hub reads."""
    lines = ["---", "library_name: elmo_tasks", f"license: {card['license']}"]
    lines += ["language: en", "tags: [elmo]"]
    if "pipeline_tag" in card:
        lines.append(f"pipeline_tag: {card['pipeline_tag']}")
    lines.append("---")
    return lines


def facts(
    run: "Run", folder: Path, full: dict[str, Any], half: dict[str, Any], files: list[Path]
) -> dict[str, str]:
    """The table of a card."""
    from elmo_tasks.paper.numbers import TASKS

    card = CARDS[run.task]
    paper_task = TASKS[run.task]
    reduced_score = 100 * half["metrics"][paper_task.metric]
    whole_score = json.loads(run.file.read_text())[paper_task.split]
    difference = largest_difference(full["predictions"], half["predictions"])
    n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    speed = f"{half['words_per_second']:,} words per CPU second, one thread"
    return {
        "data": f"{run.settings['data']}: {card['data']}",
        f"{paper_task.score}, {paper_task.split} set": (
            f"{reduced_score:.1f}; {scores_of_seeds(run, paper_task.split, files)}"
        ),
        "speed": f"{speed}, {half['machine']} ({instructions()})",
        "memory": f"{half['memory_mb']:,} MB with Python, torch and AllenNLP",
        "size": f"{n_bytes / 1e6:.1f} MB, without the biLM `small-open` that the package has",
        "whole archive of the training": (
            f"{paper_task.score} {whole_score:.2f} (here {reduced_score:.2f}); "
            f"numbers in predictions differ by at most {difference:.4f}"
        ),
    }


def scores_of_seeds(run: "Run", split: str, files: list[Path]) -> str:
    """The range of the published runs, or else of the scores in `files`."""
    seeds = CARDS[run.task].get("seeds")
    if seeds is not None:
        return str(seeds)
    what = "runs"
    published = list((ROOT / "results/open" / run.task / run.variant).glob("?.json"))
    if published:
        files = published
        what = "published runs"
    scores = [json.loads(file.read_text())[split] for file in files]
    if len(scores) == 1:
        return "one seed"
    return f"{min(scores):.1f} to {max(scores):.1f} in {len(scores)} {what}"


if __name__ == "__main__":
    main()
