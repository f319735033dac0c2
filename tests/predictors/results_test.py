"""What each type of result gives, for an example."""

from typing import Any

import pytest

from elmo_tasks.corpora.standoff import standoff_of
from elmo_tasks.predictors import results
from elmo_tasks.predictors.pictures import picture
from elmo_tasks.predictors.results import ResultType, check_labels

LABEL = "<img src=x onerror=alert(1)>"
ANN: dict[str, Any] = {"text": "Ann", "start": 0, "end": 3}
ROLES = [{"verb": "sang", "start": 4, "end": 8, "roles": [{**ANN, "label": "ARG0"}]}]
CHAINS = {"chains": [[ANN, {"text": "Ann", "start": 9, "end": 12}]], "resolved": "Ann left Ann."}
# Each with a text and a result.
EXAMPLES: list[tuple[ResultType, str, Any]] = [
    (results.Json(), "Ann sang.", {"any": ["content"]}),
    (results.Names(["PERSON"]), "Ann sang.", [{**ANN, "label": "PERSON", "probability": 0.9}]),
    (results.TaggedWords(), "Ann", [{**ANN, "label": "PROPN", "xpos": "NNP", "probability": 0.9}]),
    (results.Roles(), "Ann sang.", ROLES),
    (results.Chains(), "Ann left Ann.", CHAINS),
    (results.Answer(), "Ann sang.", {**ANN, "probability": 0.9}),
    (results.Label(["no", "yes"]), "Who sang?", {"no": 0.1, "yes": 0.9}),
    (results.Entailment(["no", "yes"]), "Who sang?", {"no": 0.1, "yes": 0.9}),
    (results.Stars(["1", "2"]), "Good.", {"stars": 2, "probabilities": {1: 0.4, 2: 0.6}}),
]


@pytest.mark.parametrize(
    ("result_type", "text", "result"),
    EXAMPLES,
    ids=[type(result_type).__name__ for result_type, *_ in EXAMPLES],
)
class TestExamples:
    def test_rows_have_the_columns(self, result_type, text, result):
        rows = list(result_type.rows(result))
        assert rows
        for row in rows:
            if result_type.columns:
                assert list(row) == list(result_type.columns)
            for name, column in result_type.columns.items():
                assert isinstance(row[name], column)

    def test_places_are_in_the_text(self, result_type, text, result):
        if result_type.has_spans:
            spans = []
            for _, span in standoff_of(result_type, result).marks:
                if "text" in span:
                    spans.append(span)
            for group in result_type.groups(result):
                spans += group.spans
            assert spans
            for span in spans:
                assert text[span["start"] : span["end"]] == span["text"]

    def test_labels_are_text_in_pictures(self, result_type, text, result):
        labeled = with_labels(result)
        html = picture(result_type, text, labeled, "en")
        assert "<img" not in html
        if LABEL in repr(labeled):
            assert "&lt;img src=x" in html


def with_labels(value: Any) -> Any:
    """A result with `LABEL` instead of its labels."""
    if isinstance(value, list):
        return [with_labels(element) for element in value]
    if not isinstance(value, dict):
        return value
    labeled = {}
    for key, element in value.items():
        if key == "label":
            labeled[key] = LABEL
        elif key == "yes":
            labeled[LABEL] = element
        else:
            labeled[key] = with_labels(element)
    return labeled


@pytest.mark.parametrize(
    "label", ["", " ", "B-", "U- ", "a\tb", "a\nb", "B-a\x85b", "a\u2028b", "\u2029"]
)
def test_a_label_is_in_one_line_and_not_empty(label):
    check_labels(["O", "B-PER", "entity type", "$-", "-"], "model")
    with pytest.raises(ValueError, match=r"in one line without tabs, .*: some/model"):
        check_labels(["O", label], "some/model")
