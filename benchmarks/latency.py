"""
How long one sentence and one text take at each entry point, against AllenNLP's biLM and against a
different checkout: `python benchmarks/latency.py`, or
`python benchmarks/latency.py --other ../worktree`.

Each checkout runs in a separate process, and all take turns at each entry point, so other load
slows all of them: the ratios are what counts. The small size is `small-open`; the weights of the
original size are random.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

# 19 and 20 words, with a name that is different in each turn: no entry point may find layers that
# it has computed before.
SENTENCE = (
    "The European Commission approved the plan because Angela {} supported it , "
    "she said on Monday in Berlin ."
)
TEXT = (
    "The Commission approved the plan because Angela {} supported it. "
    "She praised it on Monday in Berlin."
)
TASKS = ("ner", "srl", "coref", "sst", "pos")
# Entry points that embed sentences, and how many.
N_SENTENCES = {"1 sentence": 1, "8 sentences": 8, "64 sentences": 64}
# The trained models use the small biLM.
ENTRY_POINTS = {
    "small": [*N_SENTENCES, "weights", "1 string", *TASKS, "spaCy ner", "/ner"],
    "original": [*N_SENTENCES, "weights"],
}

# A call of an entry point with the name in the text.
Call = Callable[[str], object]


def sentences(number: int, name: str) -> list[list[str]]:
    """The sentence, or as many of different lengths."""
    words = SENTENCE.format(name).split()
    if number == 1:
        return [words]
    return [words[row % 5 :] + words[: row % 7] for row in range(number)]


class EntryPoints:
    """
    What runs in a process: functions that use the checkout on `PYTHONPATH`, each made at its first
    use.
    """

    def __init__(self, size: str) -> None:
        import torch

        from elmo_tasks import Elmo
        from elmo_tasks.bilm import Bilm, BilmOptions

        if size == "small":
            self.elmo = Elmo.from_pretrained()
        else:
            torch.manual_seed(0)
            self.elmo = Elmo(Bilm(BilmOptions()).requires_grad_(False))

    def open(self, entry_point: str) -> Call:
        if entry_point in N_SENTENCES:
            number = N_SENTENCES[entry_point]
            return lambda name: self.elmo.embed(sentences(number, name), progress=False)
        if entry_point == "weights":
            return self._weights()
        if entry_point == "1 string":
            return lambda name: self.elmo.embed([TEXT.format(name)], progress=False)
        if entry_point == "AllenNLP":
            return self._allennlp()
        if entry_point == "spaCy ner":
            return self._spacy()
        if entry_point == "/ner":
            return self._service()
        from elmo_tasks import TrainedTask

        task = TrainedTask(entry_point)
        return lambda name: task(TEXT.format(name))

    def _weights(self) -> Call:
        """
        Reads what each word of a sentence needs of the LSTMs, and does nothing else: the least
        time.
        """
        n_words = len(SENTENCE.split()) + 2
        tensors = []
        for lstm in (*self.elmo.bilm.forward_layers, *self.elmo.bilm.backward_layers):
            _, recurrent_kernel = lstm.kernel.chunk(2)
            tensors += [recurrent_kernel, lstm.projection]

        def run(name: str) -> None:
            for _ in range(n_words):
                for tensor in tensors:
                    tensor.sum()

        return run

    def _spacy(self) -> Call:
        import spacy

        nlp = spacy.blank("en")
        nlp.add_pipe("elmo_ner")
        return lambda name: nlp(TEXT.format(name))

    def _service(self) -> Call:
        os.environ["ELMO_TASKS_SERVE"] = "ner"
        from fastapi.testclient import TestClient

        from elmo_tasks.web.serve import make_app

        client = TestClient(make_app(), base_url="http://localhost").__enter__()

        def run(name: str) -> None:
            response = client.post("/ner", json={"text": TEXT.format(name)})
            response.raise_for_status()

        return run

    def _allennlp(self) -> Call:
        """AllenNLP's biLM with the same weights: the layers of `1 sentence`."""
        import torch
        from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

        with TemporaryDirectory() as folder:
            options_file = f"{folder}/options.json"
            weight_file = f"{folder}/weights.hdf5"
            self.elmo.bilm.save(options_file, weight_file)
            theirs = _ElmoBiLm(options_file, weight_file).eval()

        def run(name: str) -> None:
            # Without a reset, its layers would depend on earlier calls.
            theirs._elmo_lstm.reset_states()
            with torch.no_grad():
                theirs(batch_to_ids(sentences(1, name)))

        return run


def answer(size: str, n_threads: int) -> None:
    """
    Reads a name and an entry point per line from stdin; prints the seconds and the CPU seconds of
    one call.
    """
    import torch

    torch.set_num_threads(n_threads)
    entry_points = EntryPoints(size)
    calls: dict[str, Call] = {}
    # What libraries print must not look like an answer.
    output = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        name, entry_point = line.strip().split(" ", 1)
        if entry_point not in calls:
            calls[entry_point] = entry_points.open(entry_point)
            for other_name in ("Merkel", "Kohl"):
                calls[entry_point](other_name)
        call = calls[entry_point]
        start = time.perf_counter()
        cpu_start = time.process_time()
        call(name)
        seconds = time.perf_counter() - start
        cpu_seconds = time.process_time() - cpu_start
        print(seconds, cpu_seconds, file=output, flush=True)


class Process:
    """A checkout in a separate process."""

    def __init__(self, checkout: Path, size: str, n_threads: int) -> None:
        path = f"{checkout}{os.pathsep}{checkout / 'allennlp_today'}"
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer", size, str(n_threads)],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(n_threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def measure(self, entry_point: str, turn: int, times: "Times") -> None:
        """Adds the time of one call."""
        assert self._process.stdin and self._process.stdout
        print(f"Merk{turn}", entry_point, file=self._process.stdin, flush=True)
        seconds, cpu_seconds = self._process.stdout.readline().split()
        times.seconds.append(float(seconds))
        times.cpu_seconds.append(float(cpu_seconds))

    def close(self) -> None:
        self._process.communicate()


@dataclass
class Times:
    """The times of the same call, by turn."""

    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        return 1000 * statistics.median(self.seconds)

    @property
    def shortest_cpu(self) -> float:
        return min(self.cpu_seconds)

    def compared_to(self, ours: "Times") -> str:
        """The milliseconds and how many times ours: the median of the turns, and the CPU time."""
        pairs = zip(self.seconds, ours.seconds, strict=True)
        ratio = statistics.median(
            their_seconds / our_seconds for their_seconds, our_seconds in pairs
        )
        cpu_ratio = self.shortest_cpu / ours.shortest_cpu
        return f"{self.milliseconds:9.1f} {ratio:5.2f} {cpu_ratio:5.2f}"


def rows(size: str, n_threads: int, arguments: argparse.Namespace) -> Iterator[str]:
    """A row of the table for each entry point."""
    here = Process(arguments.here, size, n_threads)
    other = Process(arguments.other, size, n_threads) if arguments.other else None
    for entry_point in arguments.entry_points or ENTRY_POINTS[size]:
        repeats = arguments.repeats
        if N_SENTENCES.get(entry_point, 1) > 1:
            repeats = max(3, repeats // 3)
        has_allennlp = entry_point == "1 sentence" and find_spec("allennlp") is not None
        ours = Times()
        theirs = Times()
        allennlp = Times()
        for turn in range(repeats):
            here.measure(entry_point, turn, ours)
            if other is not None:
                other.measure(entry_point, turn, theirs)
            if has_allennlp:
                here.measure("AllenNLP", turn, allennlp)
        row = f"{size:8} {n_threads}  {entry_point:12} "
        row += f"{ours.milliseconds:9.1f} {1000 * ours.shortest_cpu:9.1f}"
        if other is not None:
            row += f"   other {theirs.compared_to(ours)}"
        if has_allennlp:
            row += f"   AllenNLP {allennlp.compared_to(ours)}"
        yield row
    here.close()
    if other is not None:
        other.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=ENTRY_POINTS, default=list(ENTRY_POINTS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--repeats", type=int, default=15, help="turns; a third of them for several sentences"
    )
    parser.add_argument("--entry-points", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--other", type=Path, metavar="FOLDER", help="a different checkout")
    parser.add_argument("--answer", nargs=2, metavar=("SIZE", "THREADS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.answer[0], int(arguments.answer[1]))
        return
    arguments.here = Path(__file__).resolve().parents[1]
    if arguments.other:
        arguments.other = arguments.other.resolve()
    print(
        "Milliseconds, and the shortest CPU time; then, for the other checkout and for AllenNLP's "
        "biLM with the same\nweights, milliseconds and how many times ours: the median of the "
        "turns, and by the shortest CPU time."
    )
    for size in arguments.sizes:
        for n_threads in arguments.threads:
            for row in rows(size, n_threads, arguments):
                print(row, flush=True)


if __name__ == "__main__":
    main()
