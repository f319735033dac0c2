"""
How long one sentence and one text take at each door, against AllenNLP's biLM and against a
different checkout: `python benchmarks/latency.py`, or
`python benchmarks/latency.py --other ../worktree`.

Each checkout runs in a separate process, and all take turns door by door, so other load slows all
of them: the ratios are what counts. The small size is `small-open`; the weights of the original
size are random.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

# 19 and 20 words, with a name that is different in each turn: no door may find layers that it has
# computed before.
SENTENCE = "The European Commission approved the plan because Angela {} supported it , she said on Monday in Berlin ."
TEXT = "The Commission approved the plan because Angela {} supported it. She praised it on Monday in Berlin."
TASKS = "ner", "srl", "coref", "sst", "pos"
BILM = {"1 sentence": 1, "8 sentences": 8, "64 sentences": 64}
# The trained models read the small size.
DOORS = {
    "small": [*BILM, "weights", "1 string", *TASKS, "spaCy ner", "/ner"],
    "original": [*BILM, "weights"],
}


def sentences(n: int, name: str) -> list[list[str]]:
    """The sentence, or `n` of different lengths."""
    words = SENTENCE.format(name).split()
    return [words] if n == 1 else [words[row % 5 :] + words[: row % 7] for row in range(n)]


class Doors:
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

    def open(self, door: str) -> Callable[[str], object]:
        """A function of the name in the text."""
        if door in BILM:
            return lambda name: self.elmo.embed(sentences(BILM[door], name), progress=False)
        if door == "weights":
            # Reads what each word of a sentence needs of the LSTMs, and does nothing else: the
            # least time.
            bilm, n_words = self.elmo.bilm, len(SENTENCE.split()) + 2
            lstms = [*bilm.forward_layers, *bilm.backward_layers]
            read = [each for lstm in lstms for each in (lstm.kernel.chunk(2)[1], lstm.projection)]
            return lambda name: [tensor.sum() for _ in range(n_words) for tensor in read]
        if door == "1 string":
            return lambda name: self.elmo.embed([TEXT.format(name)], progress=False)
        if door == "AllenNLP":
            return self._allennlp()
        if door == "spaCy ner":
            import spacy

            nlp = spacy.blank("en")
            nlp.add_pipe("elmo_ner")
            return lambda name: nlp(TEXT.format(name))
        if door == "/ner":
            os.environ["ELMO_TASKS_SERVE"] = "ner"
            from fastapi.testclient import TestClient

            from elmo_tasks.web.serve import make_app

            client = TestClient(make_app(), base_url="http://localhost").__enter__()
            return lambda name: client.post(
                "/ner", json={"text": TEXT.format(name)}
            ).raise_for_status()
        from elmo_tasks import TrainedTask

        task = TrainedTask(door)
        return lambda name: task(TEXT.format(name))

    def _allennlp(self) -> Callable[[str], object]:
        """AllenNLP's biLM with the same weights: the layers of `1 sentence`."""
        import torch
        from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

        with TemporaryDirectory() as folder:
            files = f"{folder}/options.json", f"{folder}/weights.hdf5"
            self.elmo.bilm.save(*files)
            theirs = _ElmoBiLm(*files).eval()

        def run(name: str) -> None:
            # Without a reset, its layers would depend on earlier calls.
            theirs._elmo_lstm.reset_states()
            with torch.no_grad():
                theirs(batch_to_ids(sentences(1, name)))

        return run


def answer(size: str, n_threads: int) -> None:
    """
    Reads a name and a door per line from stdin; prints the seconds and the CPU seconds of one call.
    """
    import torch

    torch.set_num_threads(n_threads)
    doors, opened = Doors(size), {}
    # What libraries print must not look like an answer.
    output, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        name, door = line.strip().split(" ", 1)
        if door not in opened:
            opened[door] = doors.open(door)
            opened[door]("Merkel"), opened[door]("Kohl")
        start, cpu_start = time.perf_counter(), time.process_time()
        opened[door](name)
        print(time.perf_counter() - start, time.process_time() - cpu_start, file=output, flush=True)


class Process:
    """A checkout in a separate process."""

    def __init__(self, checkout: Path, size: str, n_threads: int) -> None:
        path = os.pathsep.join(map(str, (checkout, checkout / "allennlp_today")))
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--answer", size, str(n_threads)],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": str(n_threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, door: str, turn: int) -> tuple[float, float]:
        """The seconds and the CPU seconds of one call."""
        assert self._process.stdin and self._process.stdout
        print(f"Merk{turn}", door, file=self._process.stdin, flush=True)
        wall, cpu = map(float, self._process.stdout.readline().split())
        return wall, cpu

    def close(self) -> None:
        self._process.communicate()


def rows(size: str, n_threads: int, arguments: argparse.Namespace) -> Iterator[str]:
    """A row of the table for each door."""
    processes = [
        Process(checkout, size, n_threads) for checkout in [arguments.here, *arguments.other]
    ]
    for door in arguments.doors or DOORS[size]:
        calls = [(process, door) for process in processes]
        if door == "1 sentence" and find_spec("allennlp"):
            calls.append((processes[0], "AllenNLP"))
        repeats = arguments.repeats if BILM.get(door, 1) == 1 else max(3, arguments.repeats // 3)
        turns = [
            [process.seconds(name, turn) for process, name in calls] for turn in range(repeats)
        ]
        ours, *others = zip(*turns, strict=True)
        row = f"{size:8} {n_threads}  {door:12} {milliseconds(ours):9.1f} {1000 * min(cpu for _, cpu in ours):9.1f}"
        names = ["other"] * len(arguments.other) + ["AllenNLP"]
        for name, theirs in zip(names, others, strict=False):
            ratio = statistics.median(
                their[0] / our[0] for our, their in zip(ours, theirs, strict=True)
            )
            cpu = min(seconds[1] for seconds in theirs) / min(seconds[1] for seconds in ours)
            row += f"   {name} {milliseconds(theirs):9.1f} {ratio:5.2f} {cpu:5.2f}"
        yield row
    for process in processes:
        process.close()


def milliseconds(turns: Iterable[tuple[float, float]]) -> float:
    return 1000 * statistics.median(wall for wall, _ in turns)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=DOORS, default=[*DOORS])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--repeats", type=int, default=15, help="turns; a third of them for several sentences"
    )
    parser.add_argument("--doors", nargs="+", metavar="DOOR", help="only these")
    parser.add_argument(
        "--other", nargs=1, type=Path, default=[], metavar="FOLDER", help="a different checkout"
    )
    parser.add_argument("--answer", nargs=2, metavar=("SIZE", "THREADS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.answer[0], int(arguments.answer[1]))
        return
    arguments.here = Path(__file__).resolve().parents[1]
    arguments.other = [other.resolve() for other in arguments.other]
    print(
        "Milliseconds, and the shortest CPU time; then, for the other checkout and for AllenNLP's biLM with the same"
    )
    print(
        "weights, milliseconds and how many times ours: the median of the turns, and by the shortest CPU time."
    )
    for size in arguments.sizes:
        for n_threads in arguments.threads:
            for row in rows(size, n_threads, arguments):
                print(row, flush=True)


if __name__ == "__main__":
    main()
