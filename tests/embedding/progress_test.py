"""Tests of the progress bar of a job."""

import sys
import time

import pytest

from elmo_tasks.embedding.progress import progress


class TestProgress:
    def test_the_bar_begins_where_the_earlier_run_ended(self, capsys):
        """Oracle: tqdm's text."""
        pytest.importorskip("tqdm")
        with progress(100, 40, True) as advance:
            advance(60)
        bar = capsys.readouterr().err
        assert " 40/100" in bar.replace(".0", "") or "40.0/100" in bar
        assert "100/100" in bar and "tokens/s" in bar

    def test_without_tqdm_there_are_lines(self, capsys, monkeypatch):
        """Oracle: by hand: at most one in ten seconds, with the speed of this run, and one at the end."""
        monkeypatch.setitem(sys.modules, "tqdm", None)
        times = iter([0.0, 1.0, 10.0, 11.0, 12.0])
        monkeypatch.setattr(time, "monotonic", lambda: next(times))
        with progress(1000, 400, True) as advance:
            for number in (100, 100, 100, 300):
                advance(number)
        assert capsys.readouterr().err.splitlines() == [
            "600 of 1,000 tokens, 20 tokens/s, 20 s left",
            "1,000 of 1,000 tokens, 50 tokens/s, 0 s left",
        ]

    @pytest.mark.parametrize("shown", [False, None])
    def test_where_there_is_no_terminal_nothing_is_shown(self, capsys, shown):
        """Oracle: nothing on stderr, which the test catches."""
        with progress(100, 0, shown) as advance:
            advance(100)
        assert not capsys.readouterr().err
