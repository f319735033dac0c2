"""Tests of JSON objects of data files."""

import json

import pytest

from elmo_tasks.data.formats.json_objects import check_unicode, json_object


class TestJsonObject:
    def test_an_object_is_what_json_says(self):
        """Oracle: the json of the standard library."""
        text = '{"a": [1, {"b": null, "c": "\\ud83d\\ude00"}], "d": {}}'
        assert json_object(text) == json.loads(text)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[{}]", "it is a list"),
            ("7", "it is one value"),
            ('{"a": [{"b": 1, "c": 2, "b": 1}]}', "an object has the key 'b' twice"),
            ('{"a": ' * 100_000, "nested too deeply"),
            ("{} {}", "Extra data"),
        ],
    )
    def test_what_is_none_is_an_error(self, text, problem):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=problem):
            json_object(text)


class TestCheckUnicode:
    def test_half_a_character_is_an_error_with_its_place(self):
        """Oracle: by hand."""
        check_unicode("a\U0001f600", "here")
        with pytest.raises(ValueError, match=r"^here: a text must be Unicode, but character 2 is .* \\udc00 alone"):
            check_unicode("a\udc00", "here")
