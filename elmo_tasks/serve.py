"""
Trained models behind HTTP: `python -m elmo_tasks serve`, or any ASGI server with the factory `make_app`. The settings
are environment variables, `ELMO_TASKS_SERVE` and so on, which the worker processes of a server also read.
"""

import asyncio
import ctypes
import logging
import os
import shlex
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

from anyio import CancelScope, CapacityLimiter, create_task_group, fail_after, from_thread, to_thread
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, Histogram, generate_latest
from pydantic import BaseModel, ConfigDict, Field, create_model

from elmo_tasks.predictors import TaggingPredictor, TrainedTask
from elmo_tasks.version import __version__

__all__ = ["make_app"]

logger = logging.getLogger("uvicorn.error")

MODELS = "ner srl coref squad snli sst"
MAX_BYTES, MAX_TEXTS = 1_000_000, 64
# The work for a text that is read as a whole ends only after it, and may grow with the square of its length.
MAX_CHARACTERS, MAX_CHARACTERS_AS_A_WHOLE = 50_000, 20_000
BUCKETS = (0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
SECONDS = Histogram("elmo_tasks_request_seconds", "Seconds until the answer", ["path", "status"], buckets=BUCKETS)
TEXTS = Gauge("elmo_tasks_texts_in_work", "Texts, or pairs of texts, that wait or are computed")


class _Work:
    """Computes results in threads, as many requests at the same time as there are threads; the others wait."""

    def __init__(self) -> None:
        self._limiter = CapacityLimiter(int(os.environ.get("ELMO_TASKS_SERVE_THREADS") or 2))
        self.max_seconds = float(os.environ.get("ELMO_TASKS_SERVE_SECONDS") or 60)

    async def results(self, request: Request, compute: Callable[[list[Any]], list[Any]], inputs: list[Any]) -> Any:
        """The results. The work ends before its next batch if the client leaves or the time is up."""
        results = None
        TEXTS.inc(len(inputs))
        try:
            with fail_after(self.max_seconds):
                async with create_task_group() as group:
                    group.start_soon(_cancel_without_client, request, group.cancel_scope)
                    results = await to_thread.run_sync(compute, inputs, limiter=self._limiter)
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


def _add_model(app: FastAPI, name: str, task: TrainedTask, work: _Work) -> None:
    """Two endpoints: for one input of the task, and for many."""
    predictor = task.predictor
    keys = predictor.inputs
    examples: list[Any] = [dict(zip(keys, texts, strict=True)) for texts in predictor.examples]
    n_characters = MAX_CHARACTERS if isinstance(predictor, TaggingPredictor) else MAX_CHARACTERS_AS_A_WHOLE
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": examples})
    text = Annotated[str, Field(max_length=n_characters)]
    fields: dict[str, Any] = dict.fromkeys(keys, (text, ...))
    one: Any = create_model(f"{name}_input", __config__=config, **fields)
    many: Any = create_model(f"{name}_inputs", __base__=BaseModel, inputs=(list[one], Field(max_length=MAX_TEXTS)))

    def compute(inputs: list[Any]) -> list[Any]:
        texts = [tuple(getattr(each, key) for key in keys) for each in inputs]
        return list(task.stream(texts, stop=from_thread.check_cancelled))

    @app.post(f"/{name}", summary=predictor.title, description=predictor.about, tags=[name])
    async def answer(request: Request, body: one) -> Any:
        return (await work.results(request, compute, [body]))[0]

    @app.post(f"/{name}/batch", summary=f"{predictor.title}, many", description=predictor.about, tags=[name])
    async def answers(request: Request, body: many) -> Any:
        return await work.results(request, compute, body.inputs)

    # What is loaded on first use, such as the tagger that finds verbs.
    list(task.stream(predictor.examples))
    logger.info("%r", task)


def _early_answer(request: Request) -> Response | None:
    """The answer to a request with a body that is not read."""
    # The server itself stops reading at the announced length.
    n_bytes, kind = request.headers.get("content-length"), request.headers.get("content-type", "none")
    if n_bytes is None:
        return JSONResponse({"detail": "expected the header Content-Length, got none"}, 411)
    if int(n_bytes) > MAX_BYTES:
        return JSONResponse({"detail": f"expected at most {MAX_BYTES} bytes, got {n_bytes}"}, 413)
    if "json" not in kind:
        return JSONResponse({"detail": f"expected the header Content-Type: application/json, got {kind}"}, 415)
    return None


async def _trim_memory() -> None:
    """Returns freed memory to the system. By default, glibc keeps it, and more of it for each thread that computes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(10.0)
        await asyncio.to_thread(trim, 0)


def make_app() -> FastAPI:
    """The application, with its models loaded."""
    options: Any = {name: os.environ.get(f"ELMO_TASKS_SERVE_{name.upper()}") for name in ("device", "precision")}
    options["threshold"] = float(os.environ.get("ELMO_TASKS_SERVE_THRESHOLD") or 0)
    options["trusted"] = bool(os.environ.get("ELMO_TASKS_SERVE_TRUST"))
    tasks = TrainedTask.by_name(shlex.split(os.environ.get("ELMO_TASKS_SERVE") or MODELS), **options)
    work = _Work()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trimming = asyncio.create_task(_trim_memory())
        yield
        trimming.cancel()

    # Its pages need no network.
    app = FastAPIOffline(title="elmo_tasks", version=__version__, redoc_url=None, lifespan=lifespan)

    @app.middleware("http")
    async def measure(request: Request, call_next: Any) -> Response:
        start = time.perf_counter()
        early = _early_answer(request) if request.method == "POST" else None
        response: Response = early or await call_next(request)
        path = getattr(request.scope.get("route"), "path", "other")
        SECONDS.labels(path, response.status_code).observe(time.perf_counter() - start)
        return response

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> Response:
        # Without the rejected text, which may be long, and may not be valid in UTF-8.
        errors = [{key: each[key] for key in ("loc", "msg", "type")} for each in error.errors()]
        return JSONResponse({"detail": errors}, 422)

    @app.exception_handler(TimeoutError)
    async def give_up(request: Request, error: TimeoutError) -> Response:
        return JSONResponse({"detail": f"no answer within {work.max_seconds:g} seconds: send less, or later"}, 503)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "version": __version__, "models": {name: task.summary for name, task in tasks.items()}}

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    app.add_route("/metrics", metrics, include_in_schema=False)
    app.add_route("/", lambda request: RedirectResponse("docs"), include_in_schema=False)
    for name, task in tasks.items():
        _add_model(app, name, task, work)
    return app
