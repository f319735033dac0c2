"""
The tests and the numbers of docs/gpu.md, on a machine with a GPU:
`python tools/on_a_gpu.py --to output/gpu`.

Each part is a process with a time limit, so one that fails does not stop the rest. `--base` is a
checkout to compare with. Writes `results.jsonl` and a log for each part, and prints the tables.
`--device cpu --tiny` tries it out.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parents[1]
# Seconds, in the order in which they run. AllenNLP is compared with only once.
LIMITS = {
    "tests": 130,
    "speed": 90,
    "speed base": 90,
    "allennlp": 70,
    "tasks": 60,
    "speed again": 90,
}
BATCHES = (2048, 16384, 65536)


class Rows:
    """The measurements of this process: each is written as soon as it is known."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments

    def add(self, row: str, column: str, value: float) -> None:
        line = json.dumps(
            {"row": row, "column": column, "tree": self._arguments.name, "value": value}
        )
        with (self._arguments.to / "results.jsonl").open("a") as file:
            file.write(f"{line}\n")
        print(line, flush=True)

    def limited(self, measure: Callable[..., None], seconds: int, *rest: Any) -> None:
        """Runs a measurement; an error or a time-out is only printed."""

        def stop(*_: object) -> None:
            raise TimeoutError(f"more than {seconds} s")

        signal.signal(signal.SIGALRM, stop)
        signal.alarm(seconds)
        try:
            measure(self, self._arguments, *rest)
        except Exception as error:
            print(f"{measure.__name__} {rest}: {type(error).__name__}: {error}", flush=True)
        finally:
            signal.alarm(0)


def words_per_second(
    run: Callable[[Any], object], batches: list[Any], n_words: int, device: str
) -> float:
    """The median of three turns over all batches, after one to get ready."""
    import torch

    times = []
    for _ in range(4):
        start = time.perf_counter()
        for batch in batches:
            run(batch)
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return n_words / statistics.median(times[1:])


@cache
def sentences_of(text: Path, n_words: int) -> list[list[str]]:
    """The first sentences of a text, with about `n_words` words."""
    from elmo_tasks.files.lines import numbered_lines

    found: list[list[str]] = []
    for _, line in numbered_lines(text):
        if n_words <= 0:
            break
        found.append(line.split())
        n_words -= len(found[-1])
    return [words for words in found if words]


@cache
def vocabulary_of(text: Path, n_words: int) -> Any:
    from elmo_tasks.bilm.softmax.word_list import WordList

    return WordList.from_counts(
        Counter(chain.from_iterable(sentences_of(text, n_words))), max_words=180_000
    )


def batches_of(sentences: Iterable[list[str]], n_words: int) -> Iterator[list[list[str]]]:
    """Batches of sentences of about the same length, with about `n_words` words."""
    batch: list[list[str]] = []
    for sentence in sorted(sentences, key=len):
        batch.append(sentence)
        if sum(map(len, batch)) >= n_words:
            yield batch
            batch = []


def forward(rows: Rows, arguments: argparse.Namespace, size: str) -> None:
    """Words per second through a frozen biLM, by precision and number of words of a batch."""
    import torch
    from bilm import SIZES

    from elmo_tasks.bilm import Bilm
    from elmo_tasks.bilm.character_ids import BYTES

    torch.manual_seed(0)
    exact = Bilm(SIZES[size])
    sentences = sentences_of(arguments.text, 10_000 if arguments.tiny else 400_000)
    for precision in ("float32", "bf16"):
        bilm = Bilm(SIZES[size], precision=precision).requires_grad_(False)
        bilm.load_state_dict(exact.state_dict())
        bilm.to(arguments.device)
        for n_words in BATCHES[:1] if arguments.tiny else BATCHES:
            parts = list(batches_of(sentences, n_words))
            # Some from the middle, where sentences have a usual length.
            parts = parts[len(parts) // 2 :][: max(2, 65536 // n_words)]
            n_all = sum(map(len, chain.from_iterable(parts)))
            ids = [BYTES.batch(part).to(arguments.device) for part in parts]
            with torch.no_grad():
                speed = words_per_second(bilm, ids, n_all, arguments.device)
                rows.add(f"{size}, {n_words} words a batch", precision, speed)
                if n_words == 16384 or arguments.tiny:
                    rows.add(
                        f"{size}, {n_words} words a batch, milliseconds of the GPU",
                        precision,
                        busy(bilm, ids[0]),
                    )


def busy(run: Callable[..., object], *batch: Any) -> float:
    """Milliseconds in which the GPU computes; also prints the most frequent kernels."""
    import torch

    with torch.profiler.profile() as profile:
        run(*batch)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    kernels = [
        event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    names: dict[str, int] = {}
    for event in kernels:
        names[event.name[:60]] = names.get(event.name[:60], 0) + 1
    most = sorted(names.items(), key=lambda item: -item[1])[:8]
    print(f"{len(kernels)} kernels and copies, such as {most}", flush=True)
    print(
        profile.key_averages().table(
            sort_by="self_cpu_time_total", row_limit=18, max_name_column_width=40
        )
    )
    return sum(event.device_time_total for event in kernels) / 1000


def training(rows: Rows, arguments: argparse.Namespace, size: str) -> None:
    """
    Words per second of training, as in benchmarks/train_bilm.py, and the GPU's memory and share.
    """
    import torch
    import train_bilm

    n_words = 12_000 if arguments.tiny else 1_500_000
    sentences, vocabulary = (
        sentences_of(arguments.text, n_words),
        vocabulary_of(arguments.text, n_words),
    )
    n_tokens, n_steps = (500, 1) if arguments.tiny else (16384, 10)
    for precision in ("float32", "bf16"):
        settings = SimpleNamespace(
            size=size,
            tokens=n_tokens,
            precision=precision,
            profile=n_steps,
            device=arguments.device,
        )
        trained = train_bilm.Training(len(vocabulary), settings)
        batches = list(train_bilm.batches_of(sentences, vocabulary, settings))
        if arguments.device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        # Libraries load kernels for each shape on first use.
        for batch in batches:
            trained.run_step(*batch)
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        start, n_words = time.perf_counter(), 0
        for batch in islice(batches, 3, None):
            n_words += trained.run_step(*batch)
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        rows.add(f"training, {size}", precision, n_words / (time.perf_counter() - start))
        if arguments.device == "cuda":
            rows.add(f"training, {size}, GB", precision, torch.cuda.max_memory_allocated() / 1e9)
        if arguments.device == "cuda" or arguments.tiny:
            rows.add(
                f"training, {size}, milliseconds of the GPU",
                precision,
                busy(trained.run_step, *batches[3]),
            )


def embedding(rows: Rows, arguments: argparse.Namespace) -> None:
    """Words per second of `Elmo.embed_iter`."""
    from elmo_tasks import Elmo

    sentences = sentences_of(arguments.text, 500 if arguments.tiny else 400_000)
    for precision in ("float32", "bf16"):
        elmo = Elmo.from_pretrained(device=arguments.device, precision=precision)
        times, n_words = [], sum(map(len, sentences))
        for turn in range(3):
            start = time.perf_counter()
            for _ in elmo.embed_iter(sentences[:3000] if turn == 0 else sentences, progress=False):
                pass
            times.append(time.perf_counter() - start)
        rows.add("embed_iter, small-open", precision, n_words / min(times[1:]))
    if arguments.name != "base":
        print(Elmo.from_pretrained(device=arguments.device, precision="auto"), flush=True)


def speed(arguments: argparse.Namespace) -> None:
    rows, sizes = Rows(arguments), ["tiny"] if arguments.tiny else ["small", "original"]
    rows.limited(embedding, 40)
    for measure in (training, forward):
        for size in sizes:
            rows.limited(measure, 40, size)


def allennlp(arguments: argparse.Namespace) -> None:
    """benchmarks/bilm.py: AllenNLP's biLM and ours, by number of sentences."""
    import torch
    from bilm import PRECISIONS, compare, make_bilms, sentences

    rows, all_sentences = Rows(arguments), sentences()

    def measure(rows: Rows, arguments: argparse.Namespace, size: str) -> None:
        with torch.no_grad():
            bilms = make_bilms(size, arguments.device, PRECISIONS[arguments.device])
            for batch_size in (1, 8) if arguments.tiny else (1, 8, 64, 512):
                used = all_sentences[: max(batch_size, 8)]
                parts = [
                    used[start : start + batch_size] for start in range(0, len(used), batch_size)
                ]
                for name, value in compare(arguments.device, bilms, parts, 2).items():
                    rows.add(f"{size}, {batch_size} sentences", name, value)

    for size in ["tiny"] if arguments.tiny else ["small", "original"]:
        rows.limited(measure, 60, size)


def tasks(arguments: argparse.Namespace) -> None:
    """The vectors of spaCy's component, and NER on the GPU and on the CPU beside it."""
    # Before the time limits.
    import spacy
    from allennlp.models.archival import load_archive
    from allennlp.predictors import Predictor

    rows = Rows(arguments)

    def vectors_in_spacy(rows: Rows, arguments: argparse.Namespace) -> None:
        if arguments.device == "cuda":
            spacy.require_gpu()
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        docs = [
            spacy.tokens.Doc(nlp.vocab, words) for words in sentences_of(arguments.text, 100_000)
        ]
        docs = docs[:50] if arguments.tiny else docs
        list(nlp.pipe(docs[:20]))
        start = time.perf_counter()
        list(nlp.pipe(docs))
        rows.add(
            "vectors in spaCy",
            arguments.device,
            sum(map(len, docs)) / (time.perf_counter() - start),
        )

    def entities(rows: Rows, arguments: argparse.Namespace) -> None:
        sentences = sentences_of(arguments.text, 15_000)[: 20 if arguments.tiny else 600]
        for device in ("cpu", arguments.device):
            archive = load_archive(
                str(HERE / "models" / "ner"), cuda_device=0 if device == "cuda" else -1
            )
            predictor = Predictor.from_archive(archive)
            inputs = [{"sentence": " ".join(words)} for words in sentences]
            predictor.predict_batch_json(inputs[:10])
            start = time.perf_counter()
            for first in range(0, len(inputs), 200):
                predictor.predict_batch_json(inputs[first : first + 200])
            rows.add("NER", device, sum(map(len, sentences)) / (time.perf_counter() - start))

    rows.limited(vectors_in_spacy, 25)
    rows.limited(entities, 40)


def run(part: str, arguments: argparse.Namespace, seconds: float) -> None:
    """Runs one part in its own process, with the checkout that it measures first on the path."""
    is_base = part.endswith("base")
    tree = arguments.base if is_base else HERE
    path = [str(tree), str(tree / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--part",
        part.split()[0],
        "--to",
        str(arguments.to),
    ]
    command += [
        "--name",
        "base" if is_base else "new",
        "--device",
        arguments.device,
        "--text",
        str(arguments.text),
    ]
    command += ["--tiny"] * arguments.tiny
    if part == "tests":
        only = ["-m", "gpu"] if arguments.device == "cuda" else ["tests/gpu"]
        command = [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", *only]
    log, start = arguments.to / f"{part.replace(' ', '-')}.log", time.monotonic()
    with log.open("w") as file:
        process = subprocess.Popen(
            command,
            cwd=HERE,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = f"exit {process.wait(timeout=seconds)}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = f"stopped after {seconds:.0f} s"
    lines = log.read_text(errors="replace").splitlines()
    print(
        f"== {part}: {status}, {time.monotonic() - start:.0f} s: {lines[-1] if lines else ''}",
        flush=True,
    )
    if status != "exit 0":
        print("\n".join(lines[-25:]), flush=True)


def show(results: Path) -> None:
    """A table of the rows, with the best value of each column."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in results.read_text().splitlines() if results.exists() else []:
        entry = json.loads(line)
        column = f"{entry['tree']} {entry['column']}"
        found.setdefault(entry["row"], {}).setdefault(column, []).append(entry["value"])
    columns = sorted({column for row in found.values() for column in row})
    print("\n| | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for row, values in found.items():
        best = [values.get(column, []) for column in columns]
        shown = [
            ", ".join(f"{value:,.4g}" if value < 100 else f"{value:,.0f}" for value in each)
            for each in best
        ]
        print(f"| {row} | " + " | ".join(shown) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", type=Path, default=HERE / "output" / "gpu")
    parser.add_argument(
        "--base", type=Path, help="a checkout to compare with, measured in the same way"
    )
    parser.add_argument("--seconds", type=float, default=480.0, help="of all parts")
    parser.add_argument(
        "--text", type=Path, default=HERE / "data" / "open" / "lm" / "heldout.txt.xz"
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--only", nargs="+", choices=LIMITS, default=list(LIMITS))
    parser.add_argument("--part", choices=["speed", "allennlp", "tasks"], help=argparse.SUPPRESS)
    parser.add_argument("--name", default="new", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        {"speed": speed, "allennlp": allennlp, "tasks": tasks}[arguments.part](arguments)
        return
    arguments.to, arguments.text = arguments.to.resolve(), arguments.text.resolve()
    arguments.to.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    if arguments.device == "cuda":
        subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        )
    code = "import platform, torch; print(platform.python_version(), torch.__version__, torch.version.cuda)"
    subprocess.run([sys.executable, "-c", code])
    for part, limit in LIMITS.items():
        left = min(limit, end - time.monotonic())
        if part in arguments.only and left > 5 and (arguments.base or not part.endswith("base")):
            run(part, arguments, left)
    show(arguments.to / "results.jsonl")


if __name__ == "__main__":
    main()
