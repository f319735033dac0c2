"""Fixtures for the tests of both packages, and the list of skipped tests at the end of a run."""

import logging
import os
import signal
import sys
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

# Images for containers set it; the programs that tests start would compile every module again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Models this small have no work to share: threads would wait for each other and take ten times as
# long.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the skipped tests at the end of a run, grouped by reason."""
    files_of: dict[str, list[str]] = defaultdict(list)
    for report in terminalreporter.stats.get("skipped", []):
        # File, line and message.
        reason = report.longrepr[2].removeprefix("Skipped: ")
        files_of[reason].append(report.nodeid.partition("::")[0])
    terminalreporter.section("skipped tests")
    for reason, files in sorted(files_of.items(), key=lambda item: -len(item[1])):
        terminalreporter.write_line(f"{len(files):4}  {reason}: {', '.join(sorted(set(files)))}")
    terminalreporter.write_line(
        "No other test was skipped." if files_of else "No test was skipped."
    )


@pytest.fixture(scope="session", autouse=True)
def fast_archives() -> Iterator[None]:
    """Compresses model archives at gzip's fastest level, which saves seconds per training."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        # The level is the last argument with a default; AllenNLP does not set it.
        monkeypatch.setattr(tarfile.TarFile.gzopen.__func__, "__defaults__", ("r", None, 1))
        yield


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """
    Restores Ctrl-C, which background jobs of a shell ignore, for the programs that tests start.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def logging_as_before() -> Iterator[None]:
    """Restores the logging and the exception hook, which AllenNLP's commands replace."""
    root = logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, sys.excepthook
    yield
    root.handlers[:], sys.excepthook = handlers, hook
    root.setLevel(level)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, logging_as_before: None) -> Callable[..., None]:
    """Runs `allennlp` in this process."""
    from allennlp.commands import main

    def run(*arguments: Any) -> None:
        monkeypatch.setattr(sys, "argv", ["allennlp", *map(str, arguments)])
        main(prog="allennlp")

    return run
