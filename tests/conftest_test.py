"""Tests of what all tests share."""

import io
from types import SimpleNamespace

import pytest

from tests import conftest


@pytest.fixture
def summary():
    """The end of a run in which tests were skipped: their ids and reasons."""

    def end(*skipped):
        printed = io.StringIO()
        reports = [SimpleNamespace(nodeid=test, longrepr=("file", 1, f"Skipped: {reason}")) for test, reason in skipped]
        conftest.pytest_terminal_summary(
            SimpleNamespace(
                stats={"skipped": reports} if reports else {},
                section=lambda title: print(title, file=printed),
                write_line=lambda line: print(line, file=printed),
            )
        )
        return printed.getvalue().splitlines()

    return end


class TestTerminalSummary:
    def test_skipped_tests_are_grouped_by_reason(self, summary):
        """Oracle: by hand."""
        lines = summary(
            ("a_test.py::TestA::test_1", "no GPU"), ("b_test.py::test", "no Ray"), ("a_test.py::f", "no GPU")
        )
        assert lines == [
            "skipped tests",
            "   2  no GPU: a_test.py",
            "   1  no Ray: b_test.py",
            "No other test was skipped.",
        ]

    def test_a_run_without_a_skipped_test_says_so(self, summary):
        """Oracle: by hand."""
        assert summary() == ["skipped tests", "No test was skipped."]
