"""Trained models behind HTTP."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks import TrainedTask
from elmo_tasks.__main__ import main
from tests.paths import CHECKOUT
from tests.predictors.trained_task_test import TEXTS
from tests.results import approximately

for package in ("fastapi_offline", "httpx", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)

JSON = {"Content-Type": "application/json"}
URL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def models(archive, tmp_path_factory) -> dict[str, Path]:
    """Folders of small models, with a blank in their paths."""
    folder = tmp_path_factory.mktemp("some models")
    for task in ("srl", "snli"):
        (folder / task).symlink_to(archive(task, "both", 3).parent)
    return {task: folder / task for task in ("srl", "snli")}


@pytest.fixture(scope="module")
def app(models) -> Any:
    from elmo_tasks.web.serve import make_app

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("ELMO_TASKS_SERVE", shlex.join(map(str, models.values())))
        return make_app()


@pytest.fixture(scope="module")
def client(app) -> Any:
    from starlette.testclient import TestClient

    with TestClient(app, base_url=URL) as client:
        yield client


def inputs_of(task: str) -> dict[str, str]:
    names = ("premise", "hypothesis") if task == "snli" else ("text",)
    return dict(zip(names, TEXTS[task], strict=True))


class TestAnswers:
    @pytest.mark.parametrize("task", ["srl", "snli"])
    def test_they_are_the_results_of_the_task(self, client, models, task):
        inputs = inputs_of(task)
        result = TrainedTask(models[task])(**inputs)
        expected = approximately(json.loads(json.dumps(result)))
        assert client.post(f"/{task}", json=inputs).json() == expected
        batch = {"inputs": [inputs, inputs]}
        assert client.post(f"/{task}/batch", json=batch).json() == [expected, expected]

    def test_a_line_of_a_form_has_an_answer(self, client):
        assert client.post("/srl", json={"text": "Name: ______"}).status_code == 200
        assert client.post("/srl", json={"text": "______"}).json() == []

    @pytest.mark.parametrize(
        ("path", "headers", "body", "status", "detail"),
        [
            (
                "/srl",
                {},
                b'{"text": "Ann"}',
                415,
                "expected the header Content-Type: application/json, got none",
            ),
            ("/srl", {"Content-Type": "text/plain"}, b'{"text": "Ann"}', 415, "got text/plain"),
            ("/srl", JSON, iter([b'{"text": "Ann"}']), 411, "Content-Length"),
            (
                "/srl",
                JSON,
                json.dumps({"text": "a" * 1_000_001}).encode(),
                413,
                "at most 1000000 bytes",
            ),
            ("/srl", JSON, json.dumps({"text": "a" * 50_001}).encode(), 422, "50000"),
            (
                "/snli",
                JSON,
                json.dumps({"premise": "a" * 20_001, "hypothesis": "b"}).encode(),
                422,
                "20000",
            ),
            (
                "/srl",
                JSON | {"Content-Encoding": "gzip"},
                b"...",
                415,
                "expected no header Content-Encoding, got gzip",
            ),
            (
                "/srl",
                JSON,
                '{"text": "René"}'.encode("latin-1"),
                400,
                "expected UTF-8, got byte 0xe9 at 13",
            ),
            ("/srl", JSON, b"[" * 100_000, 400, "too many brackets"),
            ("/ner", JSON, b'{"text": "Ann"}', 404, "expected one of /srl /snli, got /ner"),
            ("/srl", JSON, b'{"text": "\\ud83d"}', 422, "text"),
            ("/srl", JSON, b'{"sentence": "Ann"}', 422, "sentence"),
            (
                "/srl/batch",
                JSON,
                json.dumps({"inputs": [{"text": "Ann"}] * 65}).encode(),
                422,
                "64",
            ),
            ("/srl/batch", JSON, b'{"inputs": [], "threshold": 0.5}', 422, "threshold"),
        ],
    )
    def test_a_bad_request_is_explained(self, client, path, headers, body, status, detail):
        answer = client.post(path, headers=headers, content=body)
        assert answer.status_code == status and detail in answer.text

    def test_many_unknown_keys_have_a_short_answer(self, client):
        unknown = {str(number): 1 for number in range(60_000)}
        many_keys = client.post("/srl", json={"text": "Ann"} | unknown)
        assert many_keys.json()["detail"][0]["loc"] == ["body", "0"]
        long_key = client.post("/srl", json={"a" * 900_000: 1})
        for answer in (many_keys, long_key):
            assert answer.status_code == 422
            assert "Extra inputs are not permitted" in answer.text
            assert len(answer.content) < 1000


class TestHosts:
    @pytest.mark.parametrize("path", ["/health", "/metrics", "/docs", "/srl"])
    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "localhost@evil.example",
            "[",
            "",
        ],
    )
    def test_a_foreign_host_is_refused(self, client, path, host):
        answer = client.request("POST" if path == "/srl" else "GET", path, headers={"Host": host})
        assert answer.status_code == 421
        expected = "expected the host 127.0.0.1 or localhost or ::1 (ELMO_TASKS_SERVE_HOSTS), got"
        assert answer.json() == {"detail": f"{expected} {host}"}

    @pytest.mark.parametrize("host", ["127.0.0.1", "LOCALHOST:81", "[::1]:8000", "[::1]"])
    def test_the_names_of_this_machine_are_known(self, client, host):
        assert client.get("/health", headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize(
        ("hosts", "known", "foreign"),
        [
            (
                "nlp.example.org  other",
                ["nlp.example.org", "OTHER:80", "localhost"],
                ["example.org", "x.other"],
            ),
            (
                "*.Example.org",
                ["nlp.example.org:8000"],
                ["example.org", "nlp.example.org.evil.example"],
            ),
            ("*", ["evil.example"], []),
        ],
    )
    def test_a_setting_names_further_hosts(self, monkeypatch, hosts, known, foreign):
        from starlette.testclient import TestClient

        from elmo_tasks.web.serve import make_app

        monkeypatch.setenv("ELMO_TASKS_SERVE_HOSTS", hosts)
        monkeypatch.setattr(
            "elmo_tasks.predictors.TrainedTask.by_name", lambda models, **options: {}
        )
        client = TestClient(make_app(), base_url=URL)
        for host in known:
            assert client.get("/health", headers={"Host": host}).status_code == 200
        for host in foreign:
            assert client.get("/health", headers={"Host": host}).status_code == 421


class TestPages:
    def test_the_documentation_needs_no_network(self, client):
        page = client.get("/")
        assert page.url.path == "/docs" and "swagger" in page.text
        links = re.findall(r'(?:href|src)="([^"]+)"', page.text)
        assert len(links) >= 3
        for link in links:
            assert link.startswith("/") and client.get(link).status_code == 200

    def test_health_names_the_models_without_their_paths(self, client, models):
        health = client.get("/health").json()
        assert health["status"] == "ok" and set(health["models"]) == {"srl", "snli"}
        assert health["models"]["srl"]["task"] == "srl"
        assert str(models["srl"].parent) not in str(health)

    @pytest.mark.parametrize("path", ["/health", "/ready"])
    def test_the_state_has_a_head(self, client, path):
        assert client.head(path).status_code == client.get(path).status_code == 200

    def test_metrics_count_requests(self, client):
        name = 'elmo_tasks_request_seconds_count{path="/snli",status="200"}'
        counts = []
        for _ in range(2):
            client.post("/snli", json=inputs_of("snli"))
            metrics = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines())
            counts.append(float(metrics[name]))
        assert counts[1] == counts[0] + 1
        assert float(metrics["elmo_tasks_texts_in_work"]) == 0
        assert float(metrics["process_resident_memory_bytes"]) > 1e6


class TestQueue:
    """With two threads. The requests to `/snli` are held until the test lets them go."""

    @pytest.fixture
    def let_go(self, monkeypatch) -> threading.Event:
        from elmo_tasks.models import Esim

        let_go = threading.Event()
        forward = Esim.forward

        def held_forward(*args: Any, **kwargs: Any) -> Any:
            assert let_go.wait(60)
            return forward(*args, **kwargs)

        monkeypatch.setattr(Esim, "forward", held_forward)
        return let_go

    def wait_for(self, client: Any, n_waiting: int) -> None:
        for _ in range(1000):
            if f"elmo_tasks_requests_waiting {n_waiting}.0" in client.get("/metrics").text:
                return
            time.sleep(0.01)
        pytest.fail(f"expected {n_waiting} waiting requests")

    def test_a_service_with_a_queue_is_not_ready(self, client, let_go):
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(client.post, "/snli", json=inputs_of("snli")) for _ in range(4)]
            try:
                self.wait_for(client, n_waiting=2)
                assert client.get("/ready").status_code == 503
                assert client.get("/health").status_code == 200
            finally:
                let_go.set()
            assert {answer.result().status_code for answer in answers} == {200}
        assert client.get("/ready").status_code == 200

    def test_long_requests_leave_the_last_thread_to_short_ones(self, client, let_go):
        long = {"premise": "old man " * 700, "hypothesis": "man"}
        with ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(client.post, "/snli", json=long) for _ in range(2)]
            try:
                self.wait_for(client, n_waiting=1)
                assert client.post("/srl", json=inputs_of("srl")).status_code == 200
                assert not any(answer.done() for answer in answers)
            finally:
                let_go.set()
            assert {answer.result().status_code for answer in answers} == {200}


class TestTheEndOfWork:
    """Texts for several batches, of which only the first is computed."""

    @pytest.fixture
    def batches(self, monkeypatch) -> list[int]:
        from elmo_tasks.models import Esim

        started: list[int] = []
        forward = Esim.forward

        def counted_forward(*args: Any, **kwargs: Any) -> Any:
            started.append(1)
            return forward(*args, **kwargs)

        monkeypatch.setattr(Esim, "forward", counted_forward)
        return started

    INPUTS = ({"premise": "old man " * 1000, "hypothesis": "man"},) * 32
    BODY = json.dumps({"inputs": INPUTS}).encode()

    def test_it_ends_with_its_client(self, app, batches):
        messages = [{"type": "http.request", "body": self.BODY}, {"type": "http.disconnect"}]
        n_bytes = str(len(self.BODY)).encode()
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/snli/batch",
            "query_string": b"",
            "root_path": "",
            "headers": [(b"content-type", b"application/json"), (b"content-length", n_bytes)],
        }
        batches.clear()

        async def receive() -> dict[str, Any]:
            return messages.pop(0)

        async def send(message: dict[str, Any]) -> None:
            assert message.get("status", 499) == 499

        asyncio.run(app(scope, receive, send))
        assert not messages and len(batches) <= 1

    def test_it_ends_with_its_time(self, models, monkeypatch, batches):
        from starlette.testclient import TestClient

        from elmo_tasks.web.serve import make_app

        monkeypatch.setenv("ELMO_TASKS_SERVE", shlex.quote(str(models["snli"])))
        monkeypatch.setenv("ELMO_TASKS_SERVE_SECONDS", "0.01")
        app = make_app()
        batches.clear()
        answer = TestClient(app, base_url=URL).post("/snli/batch", content=self.BODY, headers=JSON)
        assert answer.status_code == 503 and "0.01 seconds" in answer.text
        assert len(batches) <= 1


class TestCommand:
    def test_its_arguments_are_settings_of_the_processes(self, monkeypatch):
        serve = pytest.importorskip("elmo_tasks.web.serve")
        monkeypatch.setenv("ELMO_TASKS_SERVE", "ner")
        monkeypatch.setenv("ELMO_TASKS_SERVE_DEVICE", "")
        monkeypatch.setenv("ELMO_TASKS_SERVE_TRUST", "")
        monkeypatch.setenv("ELMO_TASKS_SERVE_HOSTS", "")
        monkeypatch.setenv("ELMO_TASKS_PACKAGES", "mine")
        monkeypatch.setenv("ELMO_TASKS_SERVE_PACKAGES", "")
        started = []
        monkeypatch.setattr("uvicorn.run", lambda app, **options: started.append((app, options)))
        arguments = ["serve", "my models/ner", "srl", "--include-package", "questions"]
        arguments += ["--workers", "2", "--device", "cpu", "--port", "0"]
        arguments += ["--timeout-keep-alive", "70"]
        assert main(arguments) == 0
        expected = {
            "factory": True,
            "host": "127.0.0.1",
            "port": 0,
            "workers": 2,
            "timeout_keep_alive": 70,
        }
        assert started == [("elmo_tasks.web.serve:make_app", expected)]
        assert shlex.split(os.environ["ELMO_TASKS_SERVE"]) == ["my models/ner", "srl"]
        options = serve.settings().options
        assert options["device"] == "cpu"
        assert options["packages"] == ["questions"]
        assert options["trusted"] is True
        assert os.environ["ELMO_TASKS_PACKAGES"] == "mine"

    @pytest.mark.parametrize(
        ("given", "options", "expected"),
        [
            ("", [], ""),
            ("", ["--host", "0.0.0.0"], "*"),
            ("nlp.example", ["--host", "0.0.0.0"], "nlp.example"),
            ("nlp.example", ["--allowed-host", "a.example", "--allowed-host", "b"], "a.example b"),
        ],
    )
    def test_it_knows_its_hosts(self, monkeypatch, given, options, expected):
        monkeypatch.setattr("uvicorn.run", lambda *args, **options: None)
        monkeypatch.setenv("ELMO_TASKS_SERVE", "ner")
        monkeypatch.setenv("ELMO_TASKS_SERVE_HOSTS", given)
        assert main(["serve", "--port", "0", *options]) == 0
        assert os.environ["ELMO_TASKS_SERVE_HOSTS"] == expected

    @pytest.mark.parametrize("name", ["serve", "elmo-demo"])
    def test_a_port_in_use_is_known_before_models_are_loaded(
        self, monkeypatch, capsys, command, name
    ):
        monkeypatch.setattr("uvicorn.run", lambda *args, **options: pytest.fail("started"))
        monkeypatch.setenv("ELMO_TASKS_SERVE", "ner")
        if name == "elmo-demo":
            pytest.importorskip("gradio")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            number = str(other.getsockname()[1])
            expected = f"cannot listen on 127.0.0.1, port {number}: address already in use"
            if name == "serve":
                assert main(["serve", "no_model", "--port", number]) == 1
                assert capsys.readouterr().err.startswith(f"error: {expected}")
            else:
                with pytest.raises(SystemExit, match=expected):
                    command("elmo-demo", "no_model", "--port", number)

    @pytest.mark.parametrize("name", ["serve", "elmo-demo"])
    @pytest.mark.parametrize("number", ["99999", "-1", "http"])
    def test_a_wrong_port_is_one_sentence(self, capsys, command, name, number):
        with pytest.raises(SystemExit):
            if name == "serve":
                main([name, f"--port={number}"])
            else:
                command(name, f"--port={number}")
        expected = f"argument --port: expected a port from 0 to 65535, got {number}\n"
        assert capsys.readouterr().err.endswith(expected)

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("THREADS", "0"),
            ("THREADS", "1.5"),
            ("SECONDS", "-1"),
            ("SECONDS", "0"),
            ("SECONDS", "abc"),
            ("SECONDS", "nan"),
        ],
    )
    def test_a_wrong_setting_is_named_before_a_process_starts(
        self, monkeypatch, capsys, name, value
    ):
        monkeypatch.setattr("uvicorn.run", lambda *args, **options: pytest.fail("started"))
        # The command sets it: restored after the test.
        monkeypatch.setenv("ELMO_TASKS_SERVE", "ner")
        monkeypatch.setenv(f"ELMO_TASKS_SERVE_{name}", value)
        assert main(["serve", "ner"]) != 0
        assert f"got '{value}': ELMO_TASKS_SERVE_{name}" in capsys.readouterr().err


@pytest.mark.weekly
def test_all_models_answer_from_a_process(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path / "log"
    with log.open("w") as file:
        command = [sys.executable, "-m", "elmo_tasks", "serve", "--port", str(port)]
        server = subprocess.Popen(command, stdout=file, stderr=file, cwd=CHECKOUT)
    try:
        while server.poll() is None and "running on" not in log.read_text():
            time.sleep(0.2)
        models = ask(port, "GET", "/health")[1]["models"]
        assert len(models) == 6, log.read_text()
        for model in models:
            task = TrainedTask(model)
            inputs = []
            results = []
            for texts in task.predictor.examples:
                body = dict(zip(task.predictor.inputs, texts, strict=True))
                result = approximately(json.loads(json.dumps(task(**body))))
                assert ask(port, "POST", f"/{model}", body) == (200, result)
                inputs.append(body)
                results.append(result)
            answer = ask(port, "POST", f"/{model}/batch", {"inputs": inputs})
            assert answer == (200, results)
        body = {"text": "Angela Merkel met Tim Cook in Berlin.", "threshold": 0.985}
        names = TrainedTask("ner")(body["text"])
        (certain,) = [name for name in names if name["probability"] >= 0.985]
        expected = approximately(json.loads(json.dumps([certain])))
        assert ask(port, "POST", "/ner", body)[1] == expected
        assert ask(port, "POST", "/ner", {**body, "threshold": 1.5})[0] == 422
        assert ask(port, "POST", "/srl", body)[0] == 422
    finally:
        server.terminate()
        assert server.wait() in (0, -signal.SIGTERM)
    # No progress bar, and no error.
    assert "it/s" not in log.read_text() and "Traceback" not in log.read_text()


def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """The status and the content of an answer over HTTP."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path, json.dumps(body), JSON)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
