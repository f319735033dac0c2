from typing import ClassVar

import pytest
from allennlp.common.util import JsonDict

from elmo_tasks.data import SstReader
from elmo_tasks.predictors.json_lines_predictor import JsonLinesPredictor


class ExamplePredictor(JsonLinesPredictor):
    example: ClassVar[JsonDict] = {"sentence": "It rains ."}


@pytest.fixture
def predictor(make_model) -> ExamplePredictor:
    """Of any model: lines are read before it."""
    return ExamplePredictor(make_model("sst", []).model, SstReader())


class TestJsonLinesPredictor:
    def test_a_line_is_what_json_says(self, predictor):
        """Oracle: by hand."""
        assert predictor.load_line('{"sentence": "It rains .", "n": [1]}\n') == {"sentence": "It rains .", "n": [1]}

    @pytest.mark.parametrize("line", ["[1]\n", "It rains .\n", '{"sentence"\n', "null\n", "\x00"])
    def test_what_is_no_object_is_an_error_that_counts_lines_and_gives_an_example(self, predictor, line):
        """Oracle: the rule."""
        predictor.load_line("{}")
        with pytest.raises(ValueError, match="must be a JSON object like") as error:
            predictor.load_line(line)
        assert str(error.value).startswith("line 2 ")
        assert '{"sentence": "It rains ."}' in str(error.value)
        assert repr(line.strip()) in str(error.value)
