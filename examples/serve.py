"""
How do the trained models answer over HTTP?

In the checkout, with the extra `serve`, `OMP_NUM_THREADS=1 uvicorn --factory --app-dir examples serve:make_app` answers
`POST /ner`, `POST /ner/batch`, ..., and `GET /health`; `/docs` shows what each model takes. The models are named in the
environment variable `ELMO_TASKS_SERVE`, by default all six; the archive of your own model works, too.
"""

import asyncio
import ctypes
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model

from elmo_tasks import TrainedTask

logger = logging.getLogger("uvicorn.error")

MODELS = os.environ.get("ELMO_TASKS_SERVE", "ner srl coref squad snli sst").split()
# Requests that are computed at the same time in one process; the others wait.
THREADS = int(os.environ.get("ELMO_TASKS_SERVE_THREADS", "2"))
MAX_BYTES, MAX_CHARACTERS, MAX_TEXTS = 1_000_000, 50_000, 64

Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]


def add_model(app: FastAPI, name: str, task: TrainedTask) -> None:
    """Two endpoints: for one input of the task, and for many."""
    predictor = task.predictor
    keys, examples = predictor.inputs, [dict(zip(predictor.inputs, texts, strict=True)) for texts in predictor.examples]
    config = ConfigDict(extra="forbid", json_schema_extra={"examples": examples})
    fields: dict[str, Any] = dict.fromkeys(keys, (Text, ...))
    one: Any = create_model(f"{name}_input", __config__=config, **fields)
    many: Any = create_model(f"{name}_inputs", __base__=BaseModel, inputs=(list[one], Field(max_length=MAX_TEXTS)))
    title, text = predictor.title, predictor.about

    def results(inputs: list[Any]) -> list[Any]:
        # Unlike a call of the task, no progress bar.
        return list(task.stream([tuple(getattr(each, key) for key in keys) for each in inputs]))

    # FastAPI runs a function that is not `async` in a thread.
    @app.post(f"/{name}", summary=title, description=text, tags=[name])
    def answer(body: one) -> Any:
        return results([body])[0]

    @app.post(f"/{name}/batch", summary=f"{title}, many", description=text, tags=[name])
    def answers(body: many) -> list[Any]:
        return results(body.inputs)

    # What is loaded on first use, such as the tagger that finds verbs.
    list(task.stream(predictor.examples))
    logger.info("%r", task)


async def trim_memory() -> None:
    """Returns freed memory to the system. By default, glibc keeps it, and more of it for each thread that computes."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(10.0)
        await asyncio.to_thread(trim, 0)


def make_app() -> FastAPI:
    """The application, with its models loaded."""
    tasks = {Path(model).name.removesuffix(".tar.gz"): TrainedTask(model) for model in MODELS}

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = THREADS
        trimming = asyncio.create_task(trim_memory())
        yield
        trimming.cancel()

    app = FastAPI(title="elmo_tasks", lifespan=lifespan)

    @app.middleware("http")
    async def limit_bytes(request: Request, call_next: Any) -> Response:
        # The server itself stops reading at the announced length.
        n_bytes = request.headers.get("content-length")
        if request.method == "POST" and n_bytes is None:
            return JSONResponse({"detail": "expected the header Content-Length, got none"}, 411)
        if int(n_bytes or 0) > MAX_BYTES:
            return JSONResponse({"detail": f"expected at most {MAX_BYTES} bytes, got {n_bytes}"}, 413)
        response: Response = await call_next(request)
        return response

    @app.exception_handler(RequestValidationError)
    async def explain(request: Request, error: RequestValidationError) -> Response:
        # Without the rejected text, which may be long, and may not be valid in UTF-8.
        errors = [{key: each[key] for key in ("loc", "msg", "type")} for each in error.errors()]
        return JSONResponse({"detail": errors}, 422)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "models": {name: repr(task) for name, task in tasks.items()}}

    for name, task in tasks.items():
        add_model(app, name, task)
    return app
