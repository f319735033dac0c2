"""
Trained models behind HTTP: `python -m elmo_tasks serve`, or any ASGI server with the factory
`make_app`. The settings are environment variables, `ELMO_TASKS_SERVE` and so on, which the worker
processes of a server also read.
"""

import asyncio
import ctypes
import gc
import logging
import os
import re
import shlex
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from fnmatch import fnmatchcase
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from anyio import (
    CancelScope,
    CapacityLimiter,
    create_task_group,
    fail_after,
    from_thread,
    to_thread,
)
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, Histogram, generate_latest
from pydantic import ConfigDict, Field, create_model

from elmo_tasks.version import __version__
from elmo_tasks.web.addresses import LOCAL_HOSTS

if TYPE_CHECKING:
    from elmo_tasks.predictors import TrainedTask

__all__ = ["Settings", "make_app", "settings"]

logger = logging.getLogger("uvicorn.error")

MODELS = "ner srl coref squad snli sst"
MAX_BYTES = 1_000_000
MAX_TEXTS = 64
# The most errors that an answer lists: each unknown key of a request is one.
MAX_ERRORS = 5
MAX_CHARACTERS = 50_000
# The work for a text that is read as a whole ends only after it, and may grow with the square of
# its length.
MAX_CHARACTERS_AS_A_WHOLE = 20_000
# Requests with more characters leave one thread to the others.
MANY_CHARACTERS = 5_000
BUCKETS = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
SECONDS = Histogram(
    "elmo_tasks_request_seconds", "Seconds until the answer", ["path", "status"], buckets=BUCKETS
)
TEXTS = Gauge("elmo_tasks_texts_in_work", "Texts, or pairs of texts, that wait or are computed")
WAITING = Gauge("elmo_tasks_requests_waiting", "Requests that wait for a thread")


class Settings(NamedTuple):
    """
    What the environment variables `ELMO_TASKS_SERVE`, `ELMO_TASKS_SERVE_DEVICE` and so on say.
    """

    models: list[str]
    options: dict[str, Any]
    """The options of `TrainedTask`."""
    threads: int
    seconds: float
    hosts: list[str]
    """The names of the service; `*` stands for any characters."""


def settings() -> Settings:
    """The settings. A wrong one is an error, before models are loaded and processes are started."""
    models = shlex.split(os.environ.get("ELMO_TASKS_SERVE") or MODELS)
    threads = _number("ELMO_TASKS_SERVE_THREADS", 2, at_least=1)
    seconds = _number("ELMO_TASKS_SERVE_SECONDS", 60.0, at_least=0.001)
    options = {
        "device": os.environ.get("ELMO_TASKS_SERVE_DEVICE"),
        "precision": os.environ.get("ELMO_TASKS_SERVE_PRECISION"),
        "threshold": _number("ELMO_TASKS_SERVE_THRESHOLD", 0.0, at_least=0.0),
        "packages": os.environ.get("ELMO_TASKS_SERVE_PACKAGES", "").replace(",", " ").split(),
        "trusted": bool(os.environ.get("ELMO_TASKS_SERVE_TRUST")),
    }
    hosts = list(LOCAL_HOSTS)
    hosts += os.environ.get("ELMO_TASKS_SERVE_HOSTS", "").lower().split()
    return Settings(models, options, int(threads), seconds, hosts)


def _number(name: str, default: float, at_least: float) -> float:
    given = os.environ.get(name) or str(default)
    try:
        number = type(default)(given)
    except ValueError:
        number = float("nan")
    if not number >= at_least:
        expected = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"expected {expected} from {at_least:g}, got {given!r}: {name}")
    return number


class _Work:
    """
    Computes results in threads, as many requests at the same time as there are threads; the others
    wait.
    """

    def __init__(self, n_threads: int, max_seconds: float) -> None:
        self.max_seconds = max_seconds
        self._n_threads = n_threads
        self._threads = CapacityLimiter(n_threads)
        self._threads_for_long = CapacityLimiter(max(n_threads - 1, 1))

    @property
    def n_waiting(self) -> int:
        """How many requests wait for a thread."""
        limiters = (self._threads, self._threads_for_long)
        return sum(limiter.statistics().tasks_waiting for limiter in limiters)

    @property
    def is_ready(self) -> bool:
        """Whether fewer requests wait than there are threads."""
        return self.n_waiting < self._n_threads

    async def results(
        self,
        request: Request,
        compute: Callable[[list[Any]], list[Any]],
        inputs: list[tuple[str, ...]],
    ) -> Any:
        """
        The results of `compute`. It is stopped before its next text or batch if the client leaves
        or the time is up.
        """
        results = None
        n_characters = sum(map(len, chain.from_iterable(inputs)))
        # A request with many characters also needs one of fewer places, so one thread stays free.
        turn: AbstractAsyncContextManager[Any] = nullcontext()
        if n_characters > MANY_CHARACTERS:
            turn = self._threads_for_long
        TEXTS.inc(len(inputs))
        try:
            with fail_after(self.max_seconds):
                async with create_task_group() as group:
                    group.start_soon(_cancel_without_client, request, group.cancel_scope)
                    async with turn:
                        results = await to_thread.run_sync(compute, inputs, limiter=self._threads)
                    group.cancel_scope.cancel()
        finally:
            TEXTS.dec(len(inputs))
        if results is None:
            # A status for the metrics; nginx has it, too.
            raise HTTPException(499, "the client has left")
        return results


async def _cancel_without_client(request: Request, work: CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    work.cancel()


def _add_model(app: FastAPI, name: str, task: "TrainedTask", work: _Work) -> None:
    """Two endpoints: for one input of the task, and for many."""
    predictor = task.predictor
    one: Any = _input_type(name, task)
    inputs_field = (list[one], Field(max_length=MAX_TEXTS))
    config = ConfigDict(extra="forbid")
    many: Any = create_model(f"{name}_inputs", __config__=config, inputs=inputs_field)

    def texts_of(item: Any) -> tuple[str, ...]:
        return tuple([getattr(item, key) for key in predictor.inputs])

    def compute(inputs: list[tuple[str, ...]]) -> list[Any]:
        return list(task.stream(until_cancelled(inputs), stop=from_thread.check_cancelled))

    def until_cancelled(inputs: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
        # Also while texts are split into words, before the first batch.
        for texts in inputs:
            from_thread.check_cancelled()
            yield texts

    def above_threshold(result: Any, item: Any) -> Any:
        if task.result_type.has_threshold:
            return task.result_type.above(result, item.threshold)
        return result

    @app.post(f"/{name}", summary=predictor.title, description=predictor.about, tags=[name])
    async def answer(request: Request, body: one) -> Any:
        (result,) = await work.results(request, compute, [texts_of(body)])
        return above_threshold(result, body)

    @app.post(
        f"/{name}/batch",
        summary=f"{predictor.title}, many",
        description=predictor.about,
        tags=[name],
    )
    async def answers(request: Request, body: many) -> Any:
        results = await work.results(request, compute, [texts_of(item) for item in body.inputs])
        return list(map(above_threshold, results, body.inputs))

    # Loads now what is loaded on first use, such as the tagger that finds verbs.
    list(task.stream(predictor.examples))
    logger.info("%r", task)


def _input_type(name: str, task: "TrainedTask") -> Any:
    """The type of a body with one input of a task: its texts, and a threshold."""
    from elmo_tasks.predictors import TaggingPredictor

    predictor = task.predictor
    examples: list[Any] = []
    for texts in predictor.examples:
        examples.append(dict(zip(predictor.inputs, texts, strict=True)))
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": examples})
    max_characters = MAX_CHARACTERS_AS_A_WHOLE
    if isinstance(predictor, TaggingPredictor):
        max_characters = MAX_CHARACTERS
    text = Annotated[str, Field(max_length=max_characters)]
    fields: dict[str, Any] = dict.fromkeys(predictor.inputs, (text, ...))
    if task.result_type.has_threshold:
        fields["threshold"] = (float, Field(0.0, ge=0.0, le=1.0))
    return create_model(f"{name}_input", __config__=config, **fields)


def _foreign_host(request: Request, hosts: list[str]) -> Response | None:
    """
    The answer to a request for a different host. A web page can resolve its own name to this
    machine, and would be allowed to read the answers. No page sends requests without a host, as
    HTTP/1.0 has them.
    """
    given = request.headers.get("host")
    if given is None:
        return None
    name = re.sub(r":\d*$", "", given).strip("[]").lower()
    if any(fnmatchcase(name, host) for host in hosts):
        return None
    expected = f"the host {' or '.join(hosts)} (ELMO_TASKS_SERVE_HOSTS)"
    return JSONResponse({"detail": f"expected {expected}, got {given[:100]}"}, 421)


def _early_answer(request: Request) -> Response | None:
    """The answer to a request with a body that is not read."""
    # The server itself stops reading at the announced length.
    n_bytes = request.headers.get("content-length")
    if n_bytes is None:
        return JSONResponse({"detail": "expected the header Content-Length, got none"}, 411)
    if int(n_bytes) > MAX_BYTES:
        return JSONResponse({"detail": f"expected at most {MAX_BYTES} bytes, got {n_bytes}"}, 413)
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        return JSONResponse({"detail": f"expected no header Content-Encoding, got {encoding}"}, 415)
    content_type = request.headers.get("content-type", "none")
    if "json" not in content_type:
        detail = f"expected the header Content-Type: application/json, got {content_type}"
        return JSONResponse({"detail": detail}, 415)
    return None


async def _trim_memory() -> None:
    """
    Returns freed memory to the system. By default, glibc keeps it, and more of it for each thread
    that computes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(10.0)
        await asyncio.to_thread(trim, 0)


def make_app() -> FastAPI:
    """The application, with its models loaded."""
    given = settings()
    from elmo_tasks.predictors import TrainedTask

    tasks = TrainedTask.by_name(given.models, **given.options)
    work = _Work(given.threads, given.seconds)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trimming = asyncio.create_task(_trim_memory())
        # A full collection would look at all objects of the libraries, and stop all threads for 0.2
        # seconds.
        gc.freeze()
        yield
        gc.unfreeze()
        trimming.cancel()

    # Its pages need no network.
    app = FastAPIOffline(title="elmo_tasks", version=__version__, redoc_url=None, lifespan=lifespan)

    @app.middleware("http")
    async def measure(request: Request, call_next: Any) -> Response:
        start = time.perf_counter()
        early = _foreign_host(request, given.hosts)
        if early is None and request.method == "POST":
            early = _early_answer(request)
        response: Response = early or await call_next(request)
        path = getattr(request.scope.get("route"), "path", "other")
        SECONDS.labels(path, response.status_code).observe(time.perf_counter() - start)
        return response

    _add_errors(app, work, list(tasks))
    for name, task in tasks.items():
        _add_model(app, name, task, work)
    _add_states(app, work, {name: task.summary for name, task in tasks.items()})
    return app


def _add_states(app: FastAPI, work: _Work, models: dict[str, Any]) -> None:
    """What is not about a text: the models, whether to send more requests, figures."""

    @app.get("/health")
    @app.head("/health", include_in_schema=False)
    async def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__, "models": models}

    @app.get("/ready")
    @app.head("/ready", include_in_schema=False)
    async def ready() -> Response:
        return JSONResponse({"waiting": work.n_waiting}, 200 if work.is_ready else 503)

    async def metrics(request: Request) -> Response:
        WAITING.set(work.n_waiting)
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    def start_page(request: Request) -> Response:
        return RedirectResponse("docs")

    app.add_route("/metrics", metrics, include_in_schema=False)
    app.add_route("/", start_page, include_in_schema=False)


def _add_errors(app: FastAPI, work: _Work, names: list[str]) -> None:
    """The answers to requests without a result."""

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> Response:
        # Without the rejected text, which may be long, and may not be valid in UTF-8.
        problems: list[dict[str, Any]] = []
        for problem in error.errors()[:MAX_ERRORS]:
            # An unknown key may be as long as the body.
            location = [key[:100] if isinstance(key, str) else key for key in problem["loc"]]
            problems.append({"loc": location, "msg": problem["msg"], "type": problem["type"]})
        return JSONResponse({"detail": problems}, 422)

    @app.exception_handler(400)
    async def name_what_is_no_json(request: Request, error: HTTPException) -> Response:
        cause = error.__cause__
        if isinstance(cause, UnicodeDecodeError):
            detail = f"expected UTF-8, got byte {cause.object[cause.start]:#04x} at {cause.start}"
        elif isinstance(cause, RecursionError):
            detail = "expected an object of texts, got too many brackets"
        else:
            detail = error.detail
        return JSONResponse({"detail": detail}, 400)

    @app.exception_handler(404)
    async def name_the_models(request: Request, error: HTTPException) -> Response:
        paths = " ".join(f"/{name}" for name in names)
        detail = f"expected one of {paths}, got {request.url.path[:100]}"
        return JSONResponse({"detail": detail}, 404)

    @app.exception_handler(TimeoutError)
    async def give_up(request: Request, error: TimeoutError) -> Response:
        detail = f"no answer within {work.max_seconds:g} seconds: send less, or later"
        return JSONResponse({"detail": detail}, 503)
