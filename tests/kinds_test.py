"""What each kind of result gives, for its example."""

from typing import Any

import pytest

from elmo_tasks import kinds
from elmo_tasks.kinds import Kind

LABEL = "<img src=x onerror=alert(1)>"
KINDS: list[Kind] = [
    kinds.Json(),
    kinds.Names(["PERSON"]),
    kinds.Words(),
    kinds.Roles(),
    kinds.Chains(),
    kinds.Answer(),
    kinds.Label(["no", "yes"]),
    kinds.Entailment(["no", "yes"]),
    kinds.Stars(["1", "2"]),
]


def name_of(kind: Kind) -> str:
    return type(kind).__name__


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
class TestExamples:
    def test_rows_have_the_columns(self, kind):
        rows = list(kind.rows(kind.example[1]))
        assert rows and all(list(row) == list(kind.columns or row) for row in rows)
        for row in rows:
            for name, column in kind.columns.items():
                assert isinstance(row[name], column)

    def test_places_are_in_the_text(self, kind):
        text, result = kind.example
        if kind.has_places:
            marks = [place for _, place in kind.standoff(result).marks if "text" in place]
            marks += [span for group in kind.groups(result) for span in group.spans]
            assert marks and all(text[place["start"] : place["end"]] == place["text"] for place in marks)

    def test_labels_are_text_in_pictures(self, kind):
        text, result = kind.example

        def labeled(part: Any) -> Any:
            if isinstance(part, list):
                return list(map(labeled, part))
            if not isinstance(part, dict):
                return part
            labels = {"label": LABEL} if "label" in part else {}
            return {LABEL if key == "yes" else key: labeled(value) for key, value in part.items()} | labels

        html = kind.picture(text, labeled(result), "en")
        assert "<img" not in html and (LABEL not in repr(labeled(result)) or "&lt;img src=x" in html)
