import re
from html import unescape
from typing import Any

import pytest

from elmo_tasks.demo.rendering import (
    likelihood_html,
    map_html,
    mixes_html,
    neighbors_html,
    predictions_html,
    similarity_html,
)
from elmo_tasks.demo.views import Attention, Line, Mark, View, with_differences

EVIL = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
FOUND: dict[str, Any] = {"words": [EVIL, "play", '"'], "position": 1}
LAYER = {"layer": 0, "name": "layer 0"}


def text_of(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


class TestEscaping:
    @pytest.mark.parametrize(
        "html",
        [
            similarity_html({"occurrences": [FOUND], "layers": [{**LAYER, "vectors": [[1.0]], "similarity": [[1.0]]}]}),
            neighbors_html(
                {
                    "occurrences": [FOUND],
                    "layers": [{**LAYER, "neighbors": [[{**FOUND, "similarity": 0.5}]]}],
                    "static": [{"word": EVIL, "similarity": 0.1}],
                }
            ),
            map_html({"layers": [{**LAYER, "points": [{**FOUND, "own": None, "x": 0.0, "y": 0.0}], "n_all": 1}]}),
            predictions_html([EVIL], [View([Line([EVIL], [Mark(0, 0, EVIL)], EVIL)])]),
            predictions_html(["a"], [View(label=EVIL, probabilities={EVIL: 1.0})]),
            predictions_html(["a"], [View(attention=[Attention(EVIL, [EVIL], [EVIL], [[1.0]])])]),
            mixes_html([(EVIL, EVIL, [{"place": "input", "weights": [1.0], "gamma": 1.0}])]),
            likelihood_html(
                {"words": [EVIL], "forward": [-1.0], "backward": [-1.0], "is_known": [True], "end": -1.0, "begin": -1.0}
            ),
        ],
    )
    def test_markup_of_users_is_shown_and_not_run(self, html):
        """Oracle: the text with the characters of HTML escaped, and no element of it."""
        assert ESCAPED in html
        assert "<script" not in html


class TestPredictions:
    def test_marks_are_nested(self):
        """Oracle: the order of the text by hand: inner marks end before outer ones."""
        marks = [Mark(0, 2, "1"), Mark(0, 0, "2"), Mark(2, 2, "3", 0.25)]
        html = predictions_html(["model"], [View([Line(["Ann", "'s", "dog", "ran"], marks)])])
        assert text_of(html) == "model Ann 2 's dog 3 0.25 1 ran"

    def test_marks_that_cross_are_an_error(self):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="marks must be nested"):
            predictions_html(["model"], [View([Line(["a", "b", "c"], [Mark(0, 1, "x"), Mark(1, 2, "y")])])])

    def test_differences_are_marked_and_counted(self):
        """Oracle: the signs by hand; models that agree have none."""
        one, other = (View([Line(["a", "b"], [Mark(0, end, "PER")])]) for end in (0, 1))
        html = predictions_html(["one", "other"], with_differences([one, other]))
        assert "The models differ" in html and html.count("≠") == 3
        html = predictions_html(["one", "other"], with_differences([one, one]))
        assert "The models agree." in html and "≠" not in html

    def test_a_label_has_one_colour_in_all_models(self):
        """Oracle: the classes."""
        views = [View([Line(["a"], [Mark(0, 0, label)])]) for label in ("PER", "LOC", "PER")]
        html = predictions_html(["x", "y", "z"], views)
        assert re.findall(r"elmo-color-(\d)", html) == ["0", "1", "0"]

    def test_that_nothing_was_found_is_said(self):
        """Oracle: the sentence."""
        assert "No entity was found." in predictions_html(
            ["x"], [View([Line(["a"], [])], nothing="No entity was found.")]
        )


class TestLikelihood:
    def test_probabilities_are_percent_and_perplexity_counts_the_boundary(self):
        """Oracle: by hand: two predictions of 1/2 and 1/8 have the perplexity 4 forward, and 2 and 0.1 % backward."""
        from math import log

        scores = {
            "words": ["a"],
            "forward": [log(0.5)],
            "backward": [log(0.001)],
            "end": log(0.125),
            "begin": log(0.25),
            "is_known": [False],
        }
        text = text_of(likelihood_html(scores))
        assert "4.0 forward, 63.2 backward" in text
        assert "a (not in the vocabulary) 50 % (1.0 bits) 0.1 % (10.0 bits)" in text


class TestMap:
    def test_points_are_inside_of_the_map(self):
        """Oracle: the size; the own sentence is drawn last, so that it is on top."""
        points = [{**FOUND, "own": own, "x": x, "y": -x} for own, x in ((1, -9.0), (None, 0.0), (None, 3.0))]
        html = map_html({"layers": [{**LAYER, "points": points, "n_all": 5}]})
        places = [tuple(map(float, place)) for place in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', html)]
        assert len(places) == 3 and all(0 < x < 360 and 0 < y < 260 for x, y in places)
        assert html.rindex("elmo-own") > html.rindex("elmo-dot")
        assert "2 occurrences in the index, of 5" in html


class TestMixes:
    def test_a_model_without_elmo_and_one_of_another_bilm_are_named(self):
        """Oracle: the sentences; layers have names only if the biLM has as many."""
        text = text_of(
            mixes_html([("x", "NER", []), ("y", "NER", [{"place": "input", "weights": [0.2, 0.8], "gamma": 2.0}])])
        )
        assert "NER: x This model has no ELMo." in text
        assert "At the input of the encoder, γ = 2.000 layer 0 0.200 layer 1 0.800" in text
        assert "No archive was given" in text_of(mixes_html([]))
