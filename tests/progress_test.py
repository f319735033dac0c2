"""Tests of the progress bar."""

import sys

import pytest

from elmo_tasks.progress import progress_bar


class TestProgressBar:
    @pytest.mark.parametrize(
        ("shown", "is_terminal", "expected"),
        [(None, True, True), (None, False, False), (True, False, True), (False, True, False)],
    )
    def test_it_is_shown_where_stderr_is_a_terminal_or_it_is_wanted(
        self, shown, is_terminal, expected, monkeypatch, capsys
    ):
        """Oracle: by hand: what stands on stderr; nothing on stdout."""
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
        with progress_bar(4, shown, "sentences") as advance:
            advance(3)
            advance(1)
        captured = capsys.readouterr()
        assert ("4/4" in captured.err and "sentences" in captured.err) == expected
        assert bool(captured.err) == expected
        assert not captured.out

    def test_the_total_may_be_unknown(self, capsys):
        """Oracle: the number that was counted."""
        with progress_bar(None, True, "sentences") as advance:
            advance(7)
        assert "7 sentences" in capsys.readouterr().err

    def test_it_begins_where_an_earlier_run_ended(self, capsys):
        """Oracle: tqdm's text."""
        with progress_bar(100, True, "tokens", 40) as advance:
            advance(60)
        bar = capsys.readouterr().err
        assert "40/100" in bar and "100/100" in bar and "tokens/s" in bar

    def test_in_a_log_it_is_a_line_now_and_then(self, capsys):
        """Oracle: by hand: a thousand steps within ten seconds are the first state and the last."""
        with progress_bar(1000, True, "tokens") as advance:
            for _ in range(1000):
                advance(1)
        assert 2 <= len(capsys.readouterr().err.strip().split("\r")) <= 3
