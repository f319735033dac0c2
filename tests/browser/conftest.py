"""A server of the demo in a process of its own, and pages of Chromium that look at it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CHECKOUT, WORDS_BILM

SCREENSHOTS = CHECKOUT / "output" / "browser"
# Markup and templates in a name, which the page must show as they are.
EVIL = "<i>ner</i> ${document.title='run'} {{7*7}}"

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# A busy machine may need long for what is done at once elsewhere.
_MILLISECONDS = 180_000
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium of the system, by Playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: `make test-browser`")
    if _CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=_CHROMIUM, args=_ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def url(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a demo with two models of entities, one of entailment, and a biLM that has its softmax."""
    from tests.demo.archives import write_archive

    folder = tmp_path_factory.mktemp("archives")
    archives = [
        write_archive(folder / EVIL.replace("/", "∕"), "ner"),
        write_archive(folder / "ner_elmo", "ner", "both", seed=1),
        write_archive(folder / "snli", "snli"),
    ]
    command = [sys.executable, "-m", "allennlp", "elmo-demo", *archives, "--bilm", WORDS_BILM, "--port", "0"]
    environment = {**os.environ, "ALLENNLP_LOG_LEVEL": "WARNING", "PYTHONPATH": str(CHECKOUT)}
    errors = folder / "stderr.txt"
    with open(errors, "w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        line = process.stdout.readline() if process.stdout else ""
        assert line.startswith("ELMo is at http://127.0.0.1:"), errors.read_text(encoding="utf-8")
        yield line.split()[3]
        process.terminate()
        assert process.wait(timeout=_MILLISECONDS / 1000) == 0
        assert "Traceback" not in errors.read_text(encoding="utf-8")
    finally:
        process.kill()


@pytest.fixture
def open_page(browser: Any, url: str) -> Iterator[Callable[..., Any]]:
    """
    Opens the demo: `open_page(width=1200, theme="light")` returns the page when it shows the first example. At the end
    of a test there were no errors on any of its pages, and nothing was asked of another host.
    """
    messages: list[str] = []
    hosts: set[str] = set()

    with ExitStack() as stack:

        def opened(width: int = 1200, theme: str = "light") -> Any:
            context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(_MILLISECONDS)
            page.on("console", lambda message: message.type == "error" and messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("dialog", lambda dialog: (messages.append(f"dialog {dialog.message}"), dialog.dismiss()))
            page.on("request", lambda request: request.url.startswith(("data:", "blob:")) or hosts.add(request.url))
            page.goto(url)
            page.locator(".elmo-neighbors").first.wait_for()
            return page

        yield opened
    assert messages == []
    assert [host for host in hosts if not host.startswith(url)] == []


@pytest.fixture
def save_screenshot() -> Callable[..., Path]:
    """Keeps what a page shows in `output/browser`: `save_screenshot(page, name)`."""

    def save(page: Any, name: str) -> Path:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        page.screenshot(path=path, full_page=True, timeout=_MILLISECONDS)
        return path

    return save
