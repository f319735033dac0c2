"""
What students keep of their teachers' gain, by the amount of unlabelled text, in as many steps for each: see README.md
in this folder. The same command resumes.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time
from pathlib import Path

from allennlp.common import Params
from allennlp.common.plugins import import_plugins
from allennlp.data import DatasetReader

from elmo_tasks.distillation.texts import read_texts
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.sealed_json import read_sealed
from elmo_tasks.replication.train.surroundings import commit

ROOT = Path(__file__).resolve().parents[2]
# Its runs without a model at the input are those of the plan, as `allennlp elmo-tables --plan open` trains them.
STUDENT = ROOT / "benchmarks" / "equal_cost" / "input.jsonnet"
METRIC = {"ner": "f1-measure-overall", "snli": "accuracy"}
TEACHER = {"ner": "input", "snli": "both"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=tuple(METRIC))
    parser.add_argument("output", type=Path, help="folder for the students")
    parser.add_argument("--text", type=Path, required=True, help="what texts.py has written")
    parser.add_argument("--teachers", type=Path, nargs="+", required=True, help="archives of the runs with ELMo")
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="of unlabelled texts; 0: no teacher")
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--steps", type=int, required=True, help="of each training, to a whole number of epochs")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "distillation")
    parser.add_argument("--runs", type=Path, default=ROOT / "results" / "runs", help="of the plan, to compare with")
    arguments = parser.parse_args()
    if not os.environ.get("ELMO_TASKS_DATA"):
        parser.error(
            "ELMO_TASKS_DATA must name the data: scores of the small data that ships would stand next to others"
        )

    import_plugins()
    os.environ |= {"TASK": arguments.task, "MODEL": "none"}
    folder = arguments.results / arguments.task
    about = {
        "teachers": [sha256_of_weights(path)[:16] for path in arguments.teachers],
        "text": sha256_of(arguments.text)[:16],
    }
    config = Params.from_file(str(STUDENT))
    batch_size = config["data_loader"]["batch_sampler"]["batch_size"]
    reader = DatasetReader.from_params(config["dataset_reader"])
    n_labelled = sum(1 for _ in reader.read(config["train_data_path"]))
    n_texts = sum(1 for _ in read_texts(arguments.text, pairs=arguments.task == "snli"))
    if (largest := max(arguments.sizes)) > n_texts:
        sys.exit(f"students.py: error: {arguments.text} has {n_texts:,} texts, but --sizes has {largest:,}")
    for seed in arguments.seeds:
        for size in arguments.sizes:
            epochs = max(1, round(arguments.steps / math.ceil(max(n_labelled, size) / batch_size)))
            file = folder / f"{size}-{seed}.json"
            of_size = about if size else {"teachers": [], "text": None}
            if not file.exists():
                train(arguments, of_size, size, seed, epochs, file)
            elif differs(json.loads(file.read_text()), {**of_size, "epochs": epochs}):
                sys.exit(
                    f"students.py: error: {file} is of other teachers, text or steps: name another folder, --results"
                )
    print_table(folder, arguments.runs, arguments.task)


def train(arguments: argparse.Namespace, about: dict, size: int, seed: int, epochs: int, file: Path) -> None:
    """One student, and its file; without texts the baseline itself, trained for as many steps."""
    run = arguments.output / f"{arguments.task}-{size}-{seed}"
    overrides = {"trainer.num_epochs": epochs, "random_seed": seed, "numpy_seed": seed, "pytorch_seed": seed}
    command = [sys.executable, "-m", "allennlp"]
    if size:
        command += ["elmo-distill", *map(str, arguments.teachers), str(arguments.text), "--max-texts", str(size)]
        command += ["--student", str(STUDENT)]
        reuse_labels(arguments.output, run, arguments.task)
    else:
        command += ["train", str(STUDENT), *(["--recover"] if run.exists() else [])]
    command += ["-s", str(run), "-o", json.dumps(overrides)]
    start = time.monotonic()
    if (run / "model.tar.gz").exists():
        check_finished(run, arguments.teachers, about["text"], size, epochs)
    elif code := subprocess.run(command, check=False).returncode:
        sys.exit(f"students.py: error: the student in {run} ended with status {code}: see above")
    metrics = json.loads((run / "metrics.json").read_text())
    metric = METRIC[arguments.task]
    result = {
        "task": arguments.task,
        "texts": size,
        "seed": seed,
        "metric": metric,
        "dev": 100 * metrics[f"best_validation_{metric}"],
        "test": 100 * metrics[f"test_{metric}"],
        "epochs": epochs,
        "best_epoch": metrics["best_epoch"] + 1,
        **about,
        "commit": commit() or "unknown",
        # Of this call, also if an earlier one was interrupted or had come to the end.
        "seconds": round(time.monotonic() - start),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as temporary:
        temporary.write_text(json.dumps(result, indent=1) + "\n")


def sha256_of_weights(archive: Path) -> str:
    """Those of a model: the archive itself has the time in it, so that the same training leaves another."""
    with tarfile.open(archive) as files, files.extractfile("weights.th") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()


def check_finished(run: Path, teachers: list[Path], text: str, size: int, epochs: int) -> None:
    """A student whose file was not written, since this script was killed before its end, must be the one asked for."""
    trainer = json.loads((run / "config.json").read_text())["trainer"]
    found: list[object] = [trainer["num_epochs"]]
    expected: list[object] = [epochs]
    if size:
        record = read_sealed(run / "distillation.json")
        found += [record["teachers"], record["text"][:16], record["most_texts"]]
        expected += [list(map(sha256_of, teachers)), text, size]
    if found != expected:
        sys.exit(f"students.py: error: {run} is of other teachers, texts or steps: remove it, or name another folder")


def differs(result: dict, expected: dict) -> bool:
    return any(result[key] != value for key, value in expected.items())


def reuse_labels(output: Path, run: Path, task: str) -> None:
    """What the teachers have said of the same texts to an earlier student; `elmo-distill` checks each part."""
    others = sorted(output.glob(f"{task}-*/teacher"), key=lambda folder: -len(list(folder.iterdir())))
    if others and not run.exists():
        shutil.copytree(others[0], run / "teacher")


def print_table(folder: Path, runs: Path, task: str) -> None:
    """Means over the seeds that a size has, next to the runs of the plan with the same seeds."""
    students = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    print("texts   seeds   dev: without, student, ELMo, kept     test: without, student, ELMo, kept")
    for size in sorted({student["texts"] for student in students}):
        of_size = {student["seed"]: student for student in students if student["texts"] == size}
        shown = []
        for part in ("dev", "test"):
            without, elmo = (
                statistics.mean(of_plan(runs, task, variant, seed)[part] for seed in of_size)
                for variant in ("baseline", TEACHER[task])
            )
            scores = [student[part] for student in of_size.values()]
            deviation = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
            student = statistics.mean(scores)
            kept = (student - without) / (elmo - without)
            shown.append(f"{without:.2f}, {student:.2f}{deviation}, {elmo:.2f}, {kept:.0%}")
        print(f"{size:6,}   {' '.join(map(str, sorted(of_size)))}   {'     '.join(shown)}")


def of_plan(runs: Path, task: str, variant: str, seed: int) -> dict:
    """A finished run of the plan."""
    file = runs / task / variant / f"{seed}.json"
    if not file.exists():
        sys.exit(f"students.py: error: {file} is not there: allennlp elmo-tables --plan open --table 1 --tasks {task}")
    return json.loads(file.read_text())


if __name__ == "__main__":
    main()
