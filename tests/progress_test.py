import sys
import time

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

    def test_without_tqdm_there_are_lines(self, capsys, monkeypatch):
        """Oracle: by hand: at most one in ten seconds, with the speed of this run, and one at the end."""
        monkeypatch.setitem(sys.modules, "tqdm", None)
        times = iter([0.0, 1.0, 10.0, 11.0, 12.0])
        monkeypatch.setattr(time, "monotonic", lambda: next(times))
        with progress_bar(1000, True, "tokens", 400) as advance:
            for number in (100, 100, 100, 300):
                advance(number)
        assert capsys.readouterr().err.splitlines() == [
            "600 of 1,000 tokens, 20 tokens/s, 20 s left",
            "1,000 of 1,000 tokens, 50 tokens/s, 0 s left",
        ]

    def test_lines_need_no_total(self, capsys, monkeypatch):
        """Oracle: by hand."""
        monkeypatch.setitem(sys.modules, "tqdm", None)
        times = iter([0.0, 20.0])
        monkeypatch.setattr(time, "monotonic", lambda: next(times))
        with progress_bar(None, True, "sentences") as advance:
            advance(100)
        assert capsys.readouterr().err == "100 sentences, 5 sentences/s\n"
