"""
Answers, speed and memory of `python -m elmo_tasks serve` under load, over HTTP on this machine:

    export OMP_NUM_THREADS=1
    python benchmarks/serve.py --minutes 10 --clients 8
    python benchmarks/serve.py --minutes 0.5 --clients 1 --words 500 --threads 2 --workers 2
    python benchmarks/serve.py --clients 4 --words 20 --hostile 10 --models ner

Clients send texts of all models in turn. Half of the texts are from a list with known answers; the
others have words that the server has not seen yet, and some of them are answered again by one
thread at the end. Prints the settings when the load starts, and the figures at the end, as lines of
JSON. Hostile clients send texts of the longest allowed length that are slow to split into words;
with them, the time of `/health` is measured every second.
"""

import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmo_tasks import TrainedTask

ROOT = Path(__file__).resolve().parent.parent
SENTENCES = (ROOT / "elmo_tasks" / "web" / "sentences.txt").read_text("utf-8").splitlines()
MODELS = ("ner", "srl", "coref", "squad", "snli", "sst")
# Each was once slow to split into words.
HOSTILE = ("(", "=", "\U0001f600", "'s", "a:", "e\u0323\u0301", "\u0323\u0301", "(=_*#")
# Known answers per model.
N_KNOWN = 8
# One in so many requests is checked at the end: a text with new words.
CHECKED_EVERY = 20

# The arguments of a model.
Inputs = dict[str, str]


@dataclass(frozen=True)
class Answered:
    """What a model was asked, and an answer as JSON."""

    model: str
    inputs: Inputs
    answer: Any


def text_of(n_words: int, draw: random.Random, *, is_new: bool = False) -> str:
    words: list[str] = []
    while len(words) < n_words:
        words += draw.choice(SENTENCES).split()
        if is_new:
            words[-1:] = [f"{draw.getrandbits(40):x}", "."]
    return " ".join(words[: n_words - 1]) + " ."


def inputs_of(model: str, words: int, draw: random.Random, *, is_new: bool = False) -> Inputs:
    n_words = words or draw.choice([5, 10, 20, 40, 80])
    text = text_of(n_words, draw, is_new=is_new)
    if model == "squad":
        return {"question": text_of(8, draw), "passage": text}
    if model == "snli":
        return {"premise": text, "hypothesis": text_of(8, draw)}
    return {"text": text}


def is_same(expected: Any, answer: Any) -> bool:
    """
    Whether two answers are equal. Numbers may differ by 1e-4, because their last digits depend on
    the batch.
    """
    if isinstance(expected, dict):
        if expected.keys() != answer.keys():
            return False
        return all(is_same(expected[key], answer[key]) for key in expected)
    if isinstance(expected, list):
        return len(expected) == len(answer) and all(map(is_same, expected, answer))
    if isinstance(expected, float) and isinstance(answer, float):
        return abs(expected - answer) < 1e-4
    return bool(expected == answer)


class Client(threading.Thread):
    """
    Asks until the end, and repeats a request that was not answered, as clients of several machines
    must.
    """

    def __init__(
        self,
        number: int,
        port: int,
        known: list[Answered],
        end: float,
        arguments: argparse.Namespace,
    ) -> None:
        super().__init__()
        self.draw = random.Random(number)
        self.port = port
        self.known = known
        self.end = end
        self.models = arguments.models
        self.words = arguments.words
        self.retries = arguments.retries
        self.seconds: list[float] = []
        self.n_requests = 0
        self.n_repeated = 0
        self.n_errors = 0
        self.n_checked = 0
        self.n_different = 0
        self.unchecked: list[Answered] = []

    def run(self) -> None:
        while time.monotonic() < self.end:
            self.n_requests += 1
            if self.n_requests % 2 == 0:
                self.ask_known()
            else:
                self.ask_new()

    def ask_known(self) -> None:
        known = self.draw.choice(self.known)
        answer = self.ask(known.model, known.inputs)
        if answer is not None:
            self.n_checked += 1
            self.n_different += not is_same(known.answer, answer)

    def ask_new(self) -> None:
        model = self.draw.choice(self.models)
        inputs = inputs_of(model, self.words, self.draw, is_new=True)
        answer = self.ask(model, inputs)
        if answer is not None and self.n_requests % CHECKED_EVERY == 1:
            self.unchecked.append(Answered(model, inputs, answer))

    def ask(self, model: str, inputs: Inputs) -> Any:
        """The answer; `None` if the last attempt failed, too."""
        start = time.perf_counter()
        answer = self.attempt(f"/{model}", inputs)
        self.seconds.append(time.perf_counter() - start)
        self.n_errors += answer is None
        return answer

    def attempt(self, path: str, inputs: Inputs) -> Any:
        for attempt in range(self.retries + 1):
            self.n_repeated += attempt > 0
            try:
                return post(self.port, path, inputs)
            except (OSError, http.client.HTTPException) as error:
                print(f"{path}: {error!r}", file=sys.stderr)
                time.sleep(0.2 * attempt)
        return None


class Hostile(threading.Thread):
    """Sends long texts of signs until the end. Their answers and errors do not count."""

    def __init__(self, number: int, port: int, end: float, models: list[str]) -> None:
        super().__init__()
        self.draw = random.Random(number)
        self.port = port
        self.end = end
        self.models = models

    def run(self) -> None:
        while time.monotonic() < self.end:
            model = self.draw.choice(self.models)
            n_characters = 50_000 if model in ("ner", "srl", "pos") else 20_000
            inputs = inputs_of(model, 5, self.draw)
            last = list(inputs)[-1]
            signs = self.draw.choice(HOSTILE) * n_characters
            inputs[last] = signs[:n_characters]
            with suppress(OSError, http.client.HTTPException):
                post(self.port, f"/{model}", inputs)


class Health(threading.Thread):
    """Asks every second whether the server is alive."""

    def __init__(self, port: int, end: float) -> None:
        super().__init__()
        self.port = port
        self.end = end
        self.seconds: list[float] = []

    def run(self) -> None:
        while time.monotonic() < self.end:
            start = time.perf_counter()
            request_json(self.port, "/health")
            self.seconds.append(time.perf_counter() - start)
            time.sleep(max(0.0, 1.0 - self.seconds[-1]))


def post(port: int, path: str, inputs: Any) -> Any:
    return request_json(port, path, json.dumps(inputs).encode())


def request_json(port: int, path: str, body: bytes | None = None) -> Any:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, headers)
    # Without the proxy of the environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as response:
        return json.load(response)


def start_service(arguments: argparse.Namespace, port: int, stack: ExitStack) -> tuple[int, float]:
    """
    Starts the service, and returns the id of its process and the seconds until it answered.
    """
    command = [sys.executable, "-m", "uvicorn", "--factory", "elmo_tasks.web.serve:make_app"]
    command += ["--port", str(port), "--workers", str(arguments.workers), "--log-level", "warning"]
    environment = {
        "ELMO_TASKS_SERVE": " ".join(arguments.models),
        "ELMO_TASKS_SERVE_THREADS": str(arguments.threads),
    }
    start = time.perf_counter()
    server = subprocess.Popen(command, env={**os.environ, **environment})
    stack.callback(server.wait)
    stack.callback(server.terminate)
    while server.poll() is None:
        try:
            post(port, f"/{arguments.models[0]}/batch", {"inputs": []})
            return server.pid, round(time.perf_counter() - start, 1)
        except OSError:
            time.sleep(0.1)
    sys.exit("the server has stopped")


def megabytes(pid: int) -> float:
    """The memory of a process and its children; what they share is counted once."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = 0.0
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            own = int(line.split()[1]) / 1e3
    return own + sum(megabytes(int(child)) for child in children)


def quantile(seconds: list[float], share: float) -> float:
    return round(sorted(seconds)[int(share * (len(seconds) - 1))], 3)


def figures_under_load(
    port: int, pid: int | None, arguments: argparse.Namespace, settings: dict[str, Any]
) -> dict[str, Any]:
    """The figures of a server under load. Prints the settings when the load starts."""
    from elmo_tasks import TrainedTask

    tasks = {model: TrainedTask(model) for model in arguments.models}
    known = known_answers(tasks, arguments.words)
    print(json.dumps(settings), flush=True)
    start = time.monotonic()
    end = start + 60 * arguments.minutes
    clients = []
    for number in range(arguments.clients):
        clients.append(Client(number + 1, port, known, end, arguments))
    threads: list[threading.Thread] = list(clients)
    for number in range(arguments.hostile):
        threads.append(Hostile(number, port, end, arguments.models))
    health = Health(port, end)
    if arguments.hostile:
        threads.append(health)
    for thread in threads:
        thread.start()
    memory: list[float] = []
    while time.monotonic() < end:
        time.sleep(max(0.0, min(60.0, end - time.monotonic())))
        if pid is not None:
            memory.append(round(megabytes(pid)))
    for client in clients:
        client.join()
    wall = time.monotonic() - start
    for thread in threads:
        thread.join()
    n_checked = n_different = 0
    seconds = []
    for client in clients:
        seconds += client.seconds
        n_checked += client.n_checked + len(client.unchecked)
        n_different += client.n_different
        for unchecked in client.unchecked:
            expected = answer_of(tasks[unchecked.model], unchecked.inputs)
            n_different += not is_same(expected, unchecked.answer)
    figures: dict[str, Any] = {
        "requests": len(seconds),
        "checked": n_checked,
        "different": n_different,
        "errors": sum(client.n_errors for client in clients),
        "repeated": sum(client.n_repeated for client in clients),
        "per second": round(len(seconds) / wall, 2),
        "p50": quantile(seconds, 0.5),
        "p99": quantile(seconds, 0.99),
    }
    if arguments.hostile:
        figures["/health p50"] = quantile(health.seconds, 0.5)
        figures["/health max"] = quantile(health.seconds, 1.0)
    figures["MB per minute"] = memory
    return figures


def known_answers(tasks: "dict[str, TrainedTask]", words: int) -> list[Answered]:
    draw = random.Random(0)
    known = []
    for model, task in tasks.items():
        for _ in range(N_KNOWN):
            inputs = inputs_of(model, words, draw)
            known.append(Answered(model, inputs, answer_of(task, inputs)))
    return known


def answer_of(task: Any, inputs: Inputs) -> Any:
    """As JSON, like the service's."""
    return json.loads(json.dumps(task(**inputs)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--words", type=int, default=0, help="of each text; 0: 5 to 80")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument(
        "--threads", type=int, default=2, help="requests that a process computes at the same time"
    )
    parser.add_argument(
        "--retries", type=int, default=0, help="how often a client repeats a failed request"
    )
    parser.add_argument(
        "--hostile", type=int, default=0, help="further clients, with texts that are slow to split"
    )
    parser.add_argument(
        "--port", type=int, help="of a server on this machine, instead of starting one"
    )
    arguments = parser.parse_args()
    settings = {**vars(arguments), "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS")}
    with ExitStack() as stack:
        port = arguments.port
        pid = None
        if port is None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            pid, settings["start-up"] = start_service(arguments, port, stack)
        print(json.dumps(figures_under_load(port, pid, arguments, settings)))


if __name__ == "__main__":
    main()
