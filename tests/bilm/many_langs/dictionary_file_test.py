"""Tests of the dictionaries of ELMoForManyLangs."""

import pytest

from elmo_tasks.bilm.many_langs.dictionary_file import read_dictionary


class TestReadDictionary:
    @pytest.mark.parametrize(
        ("text", "keys"),
        [
            ("a\t0\nb\t1\n", ["a", "b"]),
            ("b\t1\r\na\t0\r\n", ["a", "b"]),
            ("a\t0\n\u3000\t1\n", ["a", "\u3000"]),
            # Any white space is this one, as in the original.
            ("a\t0\n\u00a0\t1\n", ["a", "\u3000"]),
            ("a\t0\n1\n", ["a", "\u3000"]),
            ("New York\t0", ["New York"]),
            ("\0\t0\n\\\t1", ["\0", "\\"]),
        ],
    )
    def test_keys_are_in_the_order_of_their_numbers(self, tmp_path, text, keys):
        """Oracle: by hand, and what the original's code does with white space."""
        (tmp_path / "char.dic").write_bytes(text.encode())
        assert read_dictionary(tmp_path / "char.dic", ()) == keys

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (b"a\tb\n", r"line 1: a line must be a key, a tab and a number, but is 'a\\tb'"),
            (b"a\t0\nb\t1\t2\n", "line 2: a line must be"),
            (b"a\t0\n\n", "line 2: a line must be"),
            (b"a\t" + b"9" * 5000, "line 1: a line must be"),
            (b"a\t-1\n", "line 1: a line must be"),
            (b"a\xff\t0\n", r"line 1: the file must be UTF-8"),
            (b"a\t0\nb\t2\n", "the 2 keys must have the numbers from 0 to 1, each once, but 'b' has 2 where 1 is next"),
            (b"a\t0\nb\t0\n", "must have the numbers"),
            (b"a\t0\nb\t1\na\t2\n", "must have the numbers"),
            (b"a\t0\n", "must have the key '<oov>', but has not"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, text, message):
        """Oracle: the file, the line and the rule in the message."""
        (tmp_path / "char.dic").write_bytes(text)
        needed = ("<oov>",) if "<oov>" in message else ()
        with pytest.raises(ValueError, match=rf"char\.dic.*{message}"):
            read_dictionary(tmp_path / "char.dic", needed)
