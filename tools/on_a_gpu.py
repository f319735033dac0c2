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
from typing import Any

HERE = Path(__file__).resolve().parents[1]
# The parts in the order in which they run, with the most seconds of each. The comparison with
# AllenNLP runs only once.
LIMITS = {
    "tests": 130,
    "speed": 90,
    "speed base": 90,
    "allennlp": 70,
    "tasks": 60,
    "speed again": 90,
}
BATCHES = (2048, 16384, 65536)


class Measurements:
    """
    Runs the measurements of this process with a time limit, and writes each value as soon as it is
    known.
    """

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
    times = []
    for _ in range(4):
        start = time.perf_counter()
        for batch in batches:
            run(batch)
        synchronize(device)
        times.append(time.perf_counter() - start)
    return n_words / statistics.median(times[1:])


@cache
def sentences_of(text: Path, n_words: int) -> list[list[str]]:
    """The first sentences of a text, with about `n_words` words."""
    from elmo_tasks.files.lines import numbered_lines

    sentences: list[list[str]] = []
    for _, line in numbered_lines(text):
        if n_words <= 0:
            break
        words = line.split()
        if words:
            sentences.append(words)
        n_words -= len(words)
    return sentences


@cache
def vocabulary_of(text: Path, n_words: int) -> Any:
    from elmo_tasks.bilm.softmax.word_list import WordList

    counts = Counter(chain.from_iterable(sentences_of(text, n_words)))
    return WordList.from_counts(counts, max_words=180_000)


def batches_of(sentences: Iterable[list[str]], n_words: int) -> Iterator[list[list[str]]]:
    """Batches of sentences of about the same length, with about `n_words` words."""
    batch: list[list[str]] = []
    for sentence in sorted(sentences, key=len):
        batch.append(sentence)
        if sum(map(len, batch)) >= n_words:
            yield batch
            batch = []


def forward(measurements: Measurements, arguments: argparse.Namespace, size: str) -> None:
    """Words per second through a frozen biLM, by precision and number of words of a batch."""
    import torch
    from bilm import SIZES

    from elmo_tasks.bilm import Bilm
    from elmo_tasks.bilm.character_ids import BYTES

    torch.manual_seed(0)
    exact = Bilm(SIZES[size])
    sentences = sentences_of(arguments.text, 10_000 if arguments.tiny else 400_000)
    batch_words = BATCHES[:1] if arguments.tiny else BATCHES
    for precision in ("float32", "bf16"):
        bilm = Bilm(SIZES[size], precision=precision).requires_grad_(False)
        bilm.load_state_dict(exact.state_dict())
        bilm.to(arguments.device)
        for n_words in batch_words:
            row = f"{size}, {n_words} words a batch"
            batches = list(batches_of(sentences, n_words))
            # Some from the middle, where sentences have a usual length.
            middle = len(batches) // 2
            batches = batches[middle:][: max(2, 65536 // n_words)]
            n_all_words = sum(map(len, chain.from_iterable(batches)))
            ids = [BYTES.batch(batch).to(arguments.device) for batch in batches]
            with torch.no_grad():
                speed = words_per_second(bilm, ids, n_all_words, arguments.device)
                measurements.add(row, precision, speed)
                if n_words == 16384 or arguments.tiny:
                    milliseconds = busy(bilm, ids[0])
                    measurements.add(f"{row}, milliseconds of the GPU", precision, milliseconds)


def busy(run: Callable[..., object], *batch: Any) -> float:
    """Milliseconds in which the GPU computes; also prints the most frequent kernels."""
    import torch

    with torch.profiler.profile() as profile:
        run(*batch)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    cuda = torch.autograd.DeviceType.CUDA
    kernels = [event for event in profile.events() if event.device_type == cuda]
    names = Counter(event.name[:60] for event in kernels)
    print(f"{len(kernels)} kernels and copies, such as {names.most_common(8)}", flush=True)
    averages = profile.key_averages()
    print(averages.table(sort_by="self_cpu_time_total", row_limit=18, max_name_column_width=40))
    return sum(event.device_time_total for event in kernels) / 1000


def synchronize(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def training(measurements: Measurements, arguments: argparse.Namespace, size: str) -> None:
    """
    Words per second of training, as in benchmarks/train_bilm.py, and the GPU's memory and share.
    """
    import torch
    import train_bilm

    text_words = 1_500_000
    n_tokens = 16384
    n_steps = 10
    if arguments.tiny:
        text_words = 12_000
        n_tokens = 500
        n_steps = 1
    sentences = sentences_of(arguments.text, text_words)
    vocabulary = vocabulary_of(arguments.text, text_words)
    is_cuda = arguments.device == "cuda"
    row = f"training, {size}"
    for precision in ("float32", "bf16"):
        settings = argparse.Namespace(
            size=size,
            tokens=n_tokens,
            precision=precision,
            profile=n_steps,
            device=arguments.device,
        )
        trained = train_bilm.Training(len(vocabulary), settings)
        batches = list(train_bilm.batches_of(sentences, vocabulary, settings))
        if is_cuda:
            torch.cuda.reset_peak_memory_stats()
        # Libraries load kernels for each shape on first use.
        for batch in batches:
            trained.run_step(*batch)
        synchronize(arguments.device)
        n_words = 0
        start = time.perf_counter()
        for batch in islice(batches, 3, None):
            n_words += trained.run_step(*batch)
        synchronize(arguments.device)
        measurements.add(row, precision, n_words / (time.perf_counter() - start))
        if is_cuda:
            measurements.add(f"{row}, GB", precision, torch.cuda.max_memory_allocated() / 1e9)
        if is_cuda or arguments.tiny:
            milliseconds = busy(trained.run_step, *batches[3])
            measurements.add(f"{row}, milliseconds of the GPU", precision, milliseconds)


def embedding(measurements: Measurements, arguments: argparse.Namespace) -> None:
    """Words per second of `Elmo.embed_iter`."""
    from elmo_tasks import Elmo

    sentences = sentences_of(arguments.text, 500 if arguments.tiny else 400_000)
    n_words = sum(map(len, sentences))
    for precision in ("float32", "bf16"):
        elmo = Elmo.from_pretrained(device=arguments.device, precision=precision)
        for _ in elmo.embed_iter(sentences[:3000], progress=False):
            pass
        times = []
        for _ in range(2):
            start = time.perf_counter()
            for _ in elmo.embed_iter(sentences, progress=False):
                pass
            times.append(time.perf_counter() - start)
        measurements.add("embed_iter, small-open", precision, n_words / min(times))
    if arguments.name != "base":
        print(Elmo.from_pretrained(device=arguments.device, precision="auto"), flush=True)


def speed(arguments: argparse.Namespace) -> None:
    measurements = Measurements(arguments)
    sizes = ["tiny"] if arguments.tiny else ["small", "original"]
    measurements.limited(embedding, 40)
    for measure in (training, forward):
        for size in sizes:
            measurements.limited(measure, 40, size)


def allennlp(arguments: argparse.Namespace) -> None:
    """benchmarks/bilm.py: AllenNLP's biLM and ours, by number of sentences."""
    import torch
    from bilm import PRECISIONS, compare, make_bilms, parts_of, sentences

    measurements = Measurements(arguments)
    all_sentences = sentences()
    sizes = ["small", "original"]
    batch_sizes = [1, 8, 64, 512]
    if arguments.tiny:
        sizes = ["tiny"]
        batch_sizes = [1, 8]

    def measure(measurements: Measurements, arguments: argparse.Namespace, size: str) -> None:
        with torch.no_grad():
            bilms = make_bilms(size, arguments.device, PRECISIONS[arguments.device])
            for batch_size in batch_sizes:
                parts = parts_of(all_sentences, batch_size)
                speeds = compare(arguments.device, bilms, parts, repeats=2)
                for name, tokens_per_second in speeds.items():
                    measurements.add(f"{size}, {batch_size} sentences", name, tokens_per_second)

    for size in sizes:
        measurements.limited(measure, 60, size)


def tasks(arguments: argparse.Namespace) -> None:
    """The vectors of spaCy's component, and NER on the GPU and on the CPU beside it."""
    # Before the time limits.
    import spacy
    from allennlp.models.archival import load_archive
    from allennlp.predictors import Predictor

    measurements = Measurements(arguments)

    def vectors_in_spacy(measurements: Measurements, arguments: argparse.Namespace) -> None:
        if arguments.device == "cuda":
            spacy.require_gpu()
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo")
        sentences = sentences_of(arguments.text, 100_000)
        docs = [spacy.tokens.Doc(nlp.vocab, words) for words in sentences]
        if arguments.tiny:
            docs = docs[:50]
        list(nlp.pipe(docs[:20]))
        start = time.perf_counter()
        list(nlp.pipe(docs))
        seconds = time.perf_counter() - start
        measurements.add("vectors in spaCy", arguments.device, sum(map(len, docs)) / seconds)

    def entities(measurements: Measurements, arguments: argparse.Namespace) -> None:
        n_sentences = 20 if arguments.tiny else 600
        sentences = sentences_of(arguments.text, 15_000)[:n_sentences]
        inputs = [{"sentence": " ".join(words)} for words in sentences]
        for device in ("cpu", arguments.device):
            cuda_device = 0 if device == "cuda" else -1
            archive = load_archive(str(HERE / "models" / "ner"), cuda_device=cuda_device)
            predictor = Predictor.from_archive(archive)
            predictor.predict_batch_json(inputs[:10])
            start = time.perf_counter()
            for first in range(0, len(inputs), 200):
                predictor.predict_batch_json(inputs[first : first + 200])
            seconds = time.perf_counter() - start
            measurements.add("NER", device, sum(map(len, sentences)) / seconds)

    measurements.limited(vectors_in_spacy, 25)
    measurements.limited(entities, 40)


def run(part: str, arguments: argparse.Namespace, seconds: float) -> None:
    """Runs one part in its own process, with the checkout that it measures first on the path."""
    is_base = part.endswith("base")
    tree = arguments.base if is_base else HERE
    path = [str(tree), str(tree / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
    if part == "tests":
        only = ["-m", "gpu"] if arguments.device == "cuda" else ["tests/gpu"]
        command = [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", *only]
    else:
        command = [sys.executable, str(Path(__file__).resolve()), "--part", part.split()[0]]
        command += ["--to", str(arguments.to), "--name", "base" if is_base else "new"]
        command += ["--device", arguments.device, "--text", str(arguments.text)]
        if arguments.tiny:
            command.append("--tiny")
    log = arguments.to / f"{part.replace(' ', '-')}.log"
    start = time.monotonic()
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
    elapsed = time.monotonic() - start
    lines = log.read_text(errors="replace").splitlines()
    last_line = lines[-1] if lines else ""
    print(f"== {part}: {status}, {elapsed:.0f} s: {last_line}", flush=True)
    if status != "exit 0":
        print("\n".join(lines[-25:]), flush=True)


def show(results: Path) -> None:
    """A table of the rows, with all values of each column."""
    lines = []
    if results.exists():
        lines = results.read_text().splitlines()
    values: dict[str, dict[str, list[float]]] = {}
    names = set()
    for line in lines:
        entry = json.loads(line)
        column = f"{entry['tree']} {entry['column']}"
        names.add(column)
        values.setdefault(entry["row"], {}).setdefault(column, []).append(entry["value"])
    columns = sorted(names)
    print("\n| | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for row, row_values in values.items():
        cells = []
        for column in columns:
            cells.append(", ".join(map(rounded, row_values.get(column, []))))
        print(f"| {row} | " + " | ".join(cells) + " |")


def rounded(value: float) -> str:
    return f"{value:,.4g}" if value < 100 else f"{value:,.0f}"


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
    arguments.to = arguments.to.resolve()
    arguments.text = arguments.text.resolve()
    arguments.to.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + arguments.seconds
    if arguments.device == "cuda":
        subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        )
    code = "import platform, torch; "
    code += "print(platform.python_version(), torch.__version__, torch.version.cuda)"
    subprocess.run([sys.executable, "-c", code])
    for part, limit in LIMITS.items():
        if part not in arguments.only or (part.endswith("base") and not arguments.base):
            continue
        seconds = min(limit, end - time.monotonic())
        if seconds > 5:
            run(part, arguments, seconds)
    show(arguments.to / "results.jsonl")


if __name__ == "__main__":
    main()
