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

    def test_without_tqdm_there_is_none(self, monkeypatch, capsys):
        """Oracle: an empty stderr, and no error."""
        monkeypatch.setitem(sys.modules, "tqdm", None)
        with progress_bar(4, True, "sentences") as advance:
            advance(4)
        assert not capsys.readouterr().err
