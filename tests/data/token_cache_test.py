"""Tests of the tokens of data files on disk."""

import json
import logging
from itertools import islice

import numpy as np
import pytest
from allennlp.data.tokenizers import WhitespaceTokenizer

from elmo_tasks.data import SnliReader, SpacyBlankTokenizer, SquadReader
from elmo_tasks.data.token_cache import cached_tokens
from elmo_tasks.shipped import FIXTURES

TEXTS = ("He said: it's one.", "", "  two  words\n", "눈이 왔다.")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(folder))
    return folder


@pytest.fixture
def data(tmp_path):
    """A data file; only its content matters."""
    path = tmp_path / "data.txt"
    path.write_text("any")
    return path


@pytest.fixture
def no_spacy(monkeypatch):
    """Makes the tokenizer fail from now on: `no_spacy()`."""

    def fail(self, text):
        raise AssertionError(f"{text!r} is tokenized")

    return lambda: monkeypatch.setattr(SpacyBlankTokenizer, "tokenize", fail)


def read(data, texts=TEXTS, tokenizer=None):
    with cached_tokens(tokenizer or SpacyBlankTokenizer(), data) as cached:
        return [cached.tokenize(text) for text in texts]


def files(folder):
    return sorted(folder.rglob("*.npz"))


class TestCachedTokens:
    def test_the_second_block_needs_no_spacy(self, folder, data, no_spacy):
        """Oracle: the tokens of spaCy, with their places."""
        expected = [SpacyBlankTokenizer().tokenize(text) for text in TEXTS]
        first = read(data)
        no_spacy()
        assert first == read(data) == expected

    def test_without_the_variable_there_is_no_cache(self, folder, data, monkeypatch):
        """Oracle: no file."""
        monkeypatch.delenv("ELMO_TASKS_CACHE")
        tokenizer = SpacyBlankTokenizer()
        with cached_tokens(tokenizer, data) as cached:
            assert cached is tokenizer
        assert not folder.exists()

    def test_a_tokenizer_of_another_class_is_not_cached(self, folder, data):
        """Oracle: its settings are not known, so that a file could be of others."""
        tokenizer = WhitespaceTokenizer()
        with cached_tokens(tokenizer, data) as cached:
            assert cached is tokenizer

    def test_another_content_or_language_is_another_file(self, folder, data):
        """Oracle: their number; and the German rules, which keep `it's` together."""
        english = read(data)
        german = read(data, tokenizer=SpacyBlankTokenizer("de"))
        data.write_text("other")
        read(data)
        assert len(files(folder)) == 3
        assert len(german[0]) < len(english[0])

    def test_texts_that_were_not_known_are_added(self, folder, data, no_spacy):
        """Oracle: all are known at last."""
        read(data, TEXTS[:2])
        read(data, TEXTS[2:])
        no_spacy()
        assert len(read(data)) == len(TEXTS)

    def test_a_block_that_ends_early_keeps_nothing(self, folder, data):
        """Oracle: no file."""
        with pytest.raises(RuntimeError), cached_tokens(SpacyBlankTokenizer(), data) as cached:
            cached.tokenize("one")
            raise RuntimeError
        assert not files(folder)

    @pytest.mark.parametrize("n_bytes", [0, 100, -3])
    def test_a_damaged_file_is_written_again(self, folder, data, caplog, n_bytes):
        """Oracle: the tokens before; the warning names the file, and the next block has none."""
        expected = read(data)
        (file,) = files(folder)
        content = file.read_bytes()
        file.write_bytes(content[:n_bytes])
        assert read(data) == expected
        assert [record.getMessage().startswith(f"{file} is damaged") for record in caplog.records] == [True]
        assert read(data) == expected
        assert len(caplog.records) == 1

    @pytest.mark.parametrize(("place", "flag"), [(8, 1), (10, 99)], ids=["encrypted", "unknown compression"])
    def test_a_flag_of_its_archive_may_be_damaged(self, folder, data, caplog, place, flag):
        """Oracle: the tokens before; the warning names the file. The places are those of an entry of the directory."""
        expected = read(data)
        (file,) = files(folder)
        content = bytearray(file.read_bytes())
        content[content.index(b"PK\x01\x02") + place] = flag
        file.write_bytes(content)
        assert read(data) == expected
        assert [record.getMessage().startswith(f"{file} is damaged") for record in caplog.records] == [True]

    @pytest.mark.parametrize("name", ["keys", "counts", "places"])
    def test_arrays_that_do_not_match_are_damage(self, folder, data, caplog, name):
        """Oracle: the tokens before, and a warning."""
        expected = read(data)
        (file,) = files(folder)
        with np.load(file) as arrays:
            changed = {**arrays, name: arrays[name][1:]}
        np.savez(file, **changed)
        assert read(data) == expected
        assert "do not match" in caplog.text

    def test_a_folder_that_others_can_write_to_is_not_used(self, folder, data, caplog):
        """Oracle: a warning with the remedy, the tokens, and no file."""
        folder.mkdir()
        folder.chmod(0o777)
        assert read(data)[0]
        assert "chmod go-w" in caplog.text
        assert not files(folder)

    def test_folders_above_are_not_made(self, tmp_path, data, monkeypatch, caplog):
        """Oracle: a warning, the tokens, and no folder."""
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "not" / "here"))
        assert read(data)[0]
        assert "are not cached" in caplog.text
        assert not (tmp_path / "not").exists()


class TestReaders:
    @pytest.mark.parametrize(
        ("reader", "path"),
        [(SnliReader, FIXTURES / "snli" / "dev.jsonl"), (SquadReader, FIXTURES / "squad" / "dev.json")],
    )
    def test_instances_are_the_same(self, folder, reader, path, no_spacy, caplog):
        """Oracle: those without a cache, field by field."""
        caplog.set_level(logging.WARNING)
        read_all = [[_plain(instance) for instance in reader().read(path)] for _ in range(2)]
        no_spacy()
        read_all.append([_plain(instance) for instance in reader().read(path)])
        assert read_all[0] == read_all[1] == read_all[2]
        assert not caplog.messages

    def test_a_part_of_a_file_keeps_nothing(self, folder):
        """Oracle: no file, since other texts of it were not seen."""
        list(islice(SnliReader().read(FIXTURES / "snli" / "dev.jsonl"), 2))
        list(SnliReader(max_instances=2).read(FIXTURES / "snli" / "dev.jsonl"))
        assert not files(folder)


def _plain(instance):
    texts = [[(token.text, token.idx) for token in instance[name].tokens] for name in instance.fields if _is_text(name)]
    return texts, json.dumps(instance["metadata"].metadata, default=str), str(instance.fields.get("label"))


def _is_text(name):
    return name in ("premise", "hypothesis", "question", "passage")
