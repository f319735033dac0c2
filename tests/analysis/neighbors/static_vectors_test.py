import gzip

import pytest

from elmo_tasks.analysis import StaticVectors

LINES = "play 1 0\nplaying 0.9 0.1\n. . 0 2\nbank 0 1\nnothing 0 0\n"


class TestStaticVectors:
    @pytest.mark.parametrize("name", ["glove.2d.txt", "glove.2d.txt.gz"])
    def test_neighbors_are_by_cosine_without_the_word_itself(self, tmp_path, name):
        """Oracle: by hand: 0.9 / sqrt(0.82), then 0 for all at a right angle, in the order of the file."""
        content = LINES.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
        vectors = StaticVectors.from_file(tmp_path / name)
        found = vectors.nearest("play", 2)
        assert [word for word, _ in found] == ["playing", ". ."]
        assert [cosine for _, cosine in found] == pytest.approx([0.9 / 0.82**0.5, 0.0])
        assert vectors.nearest("PLAY", 1)[0][0] == "playing", "as in lower case"
        assert vectors.nearest("bank", 1) == [(". .", pytest.approx(1.0))], "a word with a space, and of another length"
        assert len(vectors.nearest("play", 99)) == 4
        assert vectors.nearest("zither") is None

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("x 1", "line 6: a line must have a word and 2 numbers"),
            ("x one 2", "line 6: a line must have"),
            ("x nan 2", "line 6: .* 2 numbers, finite ones, "),
            ("", "line 6: .* but is b"),
            (b"caf\xe9 1 2", "line 6: a line must have"),
        ],
    )
    def test_a_broken_line_is_named(self, tmp_path, line, message):
        """Oracle: the message says file, line, rule and value."""
        path = tmp_path / "glove.txt"
        path.write_bytes(LINES.encode() + (line if isinstance(line, bytes) else line.encode()) + b"\n")
        with pytest.raises(ValueError, match=f"{path}, {message}"):
            StaticVectors.from_file(path)

    def test_broken_files_are_named(self, tmp_path):
        """Oracle: the messages: no vectors; a header, which GloVe does not have; a cut archive."""
        path = tmp_path / "glove.txt.gz"
        path.write_bytes(gzip.compress(b""))
        with pytest.raises(ValueError, match="must hold at least one vector"):
            StaticVectors.from_file(path)
        path.write_bytes(gzip.compress(b"400000 2\nplay 1 0\n"))
        with pytest.raises(ValueError, match="line 1: a line must have a word and its numbers"):
            StaticVectors.from_file(path)
        path.write_bytes(gzip.compress(LINES.encode() * 99)[:-12])
        with pytest.raises(ValueError, match="can be decompressed, but this one cannot"):
            StaticVectors.from_file(path)
