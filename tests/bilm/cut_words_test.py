"""Tests of the counts of cut words."""

import pickle
from collections import Counter

from elmo_tasks.bilm import characters
from elmo_tasks.bilm.cut_words import CutWords
from elmo_tasks.bilm.model_files import read_any_options
from elmo_tasks.bilm.word_rows import WordRows
from tests.bilm.many_langs.models import write_model

SHORT, LONG = "가" * 16, "나" * 17


class TestCutWords:
    def test_words_are_counted_and_one_line_says_it(self):
        """Oracle: by hand: 16 syllables have 48 bytes and are whole; two of five words are longer, with 40%."""
        cut_words = CutWords()
        cut_words.add(["a", SHORT])
        assert cut_words.message() is None
        cut_words.add([LONG, "b" * 49, "c" * 48])
        assert (cut_words.n_words, cut_words.n_cut) == (5, 2)
        message = cut_words.message()
        assert message.startswith("2 of 5 words (40.00%) are longer than 48 bytes of UTF-8, and are cut there")
        assert message.endswith(f"The first is {LONG!r}")

    def test_it_counts_what_is_cut(self):
        """Oracle: the rows: a word is cut if its row is that of a shorter one."""
        for word in ("a" * 48, "a" * 49, "é" * 24, "é" * 25, SHORT, LONG, "😀" * 12, "😀" * 13, "a" * 48 + "\ud800"):
            cut_words = CutWords()
            cut_words.add([word])
            shorter = word.encode("utf-8", "ignore")[:48].decode("utf-8", "ignore")
            whole = word.encode("utf-8", "ignore").decode()
            assert bool(cut_words.n_cut) == (shorter != whole), word

    def test_frequencies_and_other_counts_are_added(self):
        """Oracle: by hand, also for counts of another process."""
        cut_words, other, empty = CutWords(), CutWords(), CutWords()
        cut_words.add_counts(Counter({"a": 5, LONG: 3}))
        other.add([LONG, "b"])
        for each in (other, empty):
            cut_words.merge(pickle.loads(pickle.dumps(each)))
        assert (cut_words.n_words, cut_words.n_cut, cut_words.example) == (10, 4, LONG)
        empty.merge(cut_words)
        assert (empty.n_words, empty.n_cut, empty.example) == (10, 4, LONG)

    def test_the_warning_of_single_words_is_left_to_it(self, monkeypatch, caplog):
        """Oracle: no message of the rows once a cut word is counted, and one without a count."""
        monkeypatch.setattr(characters._Once, "was_said", False)
        CutWords().add([LONG])
        characters.words_to_character_ids([LONG])
        assert not caplog.records
        monkeypatch.setattr(characters._Once, "was_said", False)
        CutWords().add([SHORT])
        characters.words_to_character_ids([LONG])
        assert len(caplog.records) == 1

    def test_a_bilm_with_dictionaries_has_room_for_characters(self, tmp_path):
        """Oracle: by hand: 10 characters with two markers; the row of a word that is cut."""
        rows = WordRows.of(read_any_options(write_model(tmp_path, max_characters=10) / "config.json"))
        cut_words = CutWords(rows)
        cut_words.add(["가" * 8, "가" * 9])
        assert cut_words.n_cut == 1
        assert "are longer than 8 characters, and" in cut_words.message()
        assert rows.row_of("가" * 9).tolist() == rows.row_of("가" * 8).tolist()
