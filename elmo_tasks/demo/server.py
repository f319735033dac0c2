"""The server of the page: on this machine, without a network."""

import ipaddress
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gradio
import uvicorn
from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from elmo_tasks.demo.demo import Demo
from elmo_tasks.demo.page import make_page, make_theme

__all__ = ["bound_socket", "make_app", "make_server"]

_STYLE = Path(__file__).with_name("style.css")
# The browser refuses whatever is not from this server. Gradio makes scripts of strings.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; frame-ancestors 'self'"
)
_SECONDS_TO_END = 1
_LARGEST_PORT = 65_535


def make_app(demo: Demo, host: str = "127.0.0.1") -> FastAPI:
    """
    # Parameters

    demo
        What it computes with.
    host
        The name or the address that it is reached by.
    """
    app = FastAPI(openapi_url=None)
    if _is_local(host):
        # Another site cannot have its name resolved to this machine and read the answers.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", host])

    app.add_middleware(_WithPolicy)
    return gradio.mount_gradio_app(
        app,
        make_page(demo),
        path="/",
        server_name=host,
        footer_links=["api", "settings"],
        show_error=True,
        max_file_size="1kb",
        ssr_mode=False,
        theme=make_theme(),
        css_paths=[_STYLE],
    )


@contextmanager
def bound_socket(host: str, port: int) -> Iterator[socket.socket]:
    """
    # Raises

    `ValueError`
        If there is no port of this number, or the host is an address of IPv6.
    `OSError`
        If the port is in use, or the host is not one of this machine.
    """
    if not 0 <= port <= _LARGEST_PORT:
        raise ValueError(f"the port must be from 0 to {_LARGEST_PORT:,}, but is {port:,}: name another with --port")
    if ":" in host:
        raise ValueError(f"the host must be a name or an address of IPv4, but is {host!r}: name another with --host")
    try:
        bound = socket.create_server((host, port), backlog=128)
    except OSError as error:
        raise OSError(
            f"the demo must have an address of this machine and a free port, but {host}:{port} is not one "
            f"({error.strerror or error}): name others with --host and --port, or --port 0 for any"
        ) from error
    with bound:
        yield bound


def make_server(app: FastAPI) -> uvicorn.Server:
    """A server, whose `run(sockets=[...])` serves until the process is interrupted."""
    # Of Gradio, which asks for a constant of Starlette by its old name.
    warnings.filterwarnings("ignore", message=".*HTTP_422_UNPROCESSABLE_ENTITY")
    # Pages that are open when it ends are cut off, which uvicorn would log as errors with their stack traces.
    return uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=_SECONDS_TO_END))


class _WithPolicy:
    """Adds the policy to each response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Content-Security-Policy"] = _POLICY
            await send(message)

        await self._app(scope, receive, send_with_policy)


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
