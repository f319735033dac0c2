import pytest

from elmo_tasks.analysis import FirstSenses
from elmo_tasks.analysis.wsd_corpus import WsdInstance

INDEX = """\
able%3:00:00:: 00001740 1 72
able%5:00:00:capable:00 00306663 2 8
apt%5:00:01:intelligent:00 02475 1 0
play%1:10:01:: 07018526 1 35
play%2:33:00:: 01072949 1 24
play%2:36:01:: 01725051 3 10
slowly%4:02:00:: 00160834 1 5
"""


def first(senses: FirstSenses, lemma: str, pos: str) -> str | None:
    return senses(WsdInstance("i", lemma, pos, 0, 1, ("unused%1",)))


class TestFirstSenses:
    @pytest.mark.parametrize("folder", [".", "dict"])
    def test_they_are_those_of_the_index(self, tmp_path, folder):
        """Oracle: the lines by hand: sense 1 of each lemma and part of speech, adjectives with their satellites."""
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "index.sense").write_text(INDEX)
        senses = FirstSenses.from_wordnet(tmp_path)
        assert first(senses, "play", "NOUN") == "play%1:10:01::"
        assert first(senses, "play", "VERB") == "play%2:33:00::"
        assert first(senses, "able", "ADJ") == "able%3:00:00::"
        assert first(senses, "apt", "ADJ") == "apt%5:00:01:intelligent:00"
        assert first(senses, "slowly", "ADV") == "slowly%4:02:00::"
        assert first(senses, "play", "ADJ") is None
        assert senses.known == {line.split()[0] for line in INDEX.splitlines()}
        assert "index.sense" in senses.source

    @pytest.mark.parametrize("line", ["play%1:10:01::", "play 1 1 1", "play%7:10:01:: 1 1 1", "play%1:1:1:: 1 one 1"])
    def test_a_broken_line_is_named(self, tmp_path, line):
        """Oracle: the message says file, line, rule and value."""
        (tmp_path / "index.sense").write_text(f"{INDEX}{line}\n")
        with pytest.raises(ValueError, match=r"index\.sense, line 8: a line must have a sense key, .* but is 'play"):
            FirstSenses.from_wordnet(tmp_path)

    def test_what_is_not_there_is_named(self, tmp_path):
        """Oracle: the messages."""
        with pytest.raises(FileNotFoundError, match=r"must have index\.sense, .* has no such file"):
            FirstSenses.from_wordnet(tmp_path)
        (tmp_path / "index.sense").write_text("")
        with pytest.raises(ValueError, match="must hold first senses, but holds not one"):
            FirstSenses.from_wordnet(tmp_path)
