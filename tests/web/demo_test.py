"""Tests of the page and its functions over HTTP, on archives with random weights."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import numpy as np
import pytest

from tests.web.conftest import TEXT

pytest.importorskip("gradio")
pytestmark = pytest.mark.slow

open_url = build_opener(ProxyHandler({})).open


@pytest.fixture
def call(url: str) -> Callable[..., Any]:
    """Calls a function over HTTP and returns its results or its error message."""

    def run(name: str, *values: str) -> Any:
        address = f"{url}gradio_api/call/{name}"
        body = json.dumps({"data": values}).encode()
        request = Request(address, body, {"Content-Type": "application/json"})
        event_id = json.load(open_url(request))["event_id"]
        lines = open_url(f"{address}/{event_id}").read().decode().splitlines()
        answer = json.loads(lines[1].removeprefix("data: "))
        if lines[0] == "event: complete":
            return answer
        return answer["error"]

    return run


class TestWordComparer:
    def test_cosines_compare_the_vectors_of_each_layer(self, comparer, elmo):
        text = f"{TEXT}\nplay and Play"
        table = comparer.compare(text, "play", "layer 2").cosines
        arrays = elmo.embed([line.split() for line in text.splitlines()], layers="all")
        # Shape: (n_layers, n_occurrences, dim)
        vectors = np.stack([arrays[0][:, 1], arrays[1][:, 1], arrays[2][:, 0], arrays[2][:, 2]], 1)
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
        for layer, of_layer in enumerate(vectors):
            expected = (of_layer @ of_layer.T)[np.triu_indices(4, 1)]
            assert list(table[f"layer {layer}"]) == pytest.approx(expected, abs=1e-3)
        assert list(table["occurrences"])[:4] == ["1 and 2", "1 and 3", "1 and 4", "2 and 3"]

    def test_neighbours_contain_the_static_ones(self, comparer):
        neighbors = comparer.compare(TEXT, "play", "layer 0").neighbors
        assert list(neighbors["static vector"][:3]) == ["game", "film", ""]
        # In the context-insensitive layer, all occurrences have the same vector.
        for cell in neighbors["occurrence 1"]:
            assert cell.startswith("1.00 ") and "[play]" in cell

    def test_the_map_is_by_principal_components(self, comparer):
        points = comparer.compare(TEXT, "play", "layer 2").points
        assert list(points["of"][:2]) == ["occurrence 1", "occurrence 2"]
        assert set(points["of"][2:]) == {"index"} and len(points) > 20
        x = points["x"].to_numpy()
        y = points["y"].to_numpy()
        assert x.var() >= y.var() > 0
        assert [x.mean(), y.mean(), (x * y).mean()] == pytest.approx([0, 0, 0], abs=1e-5)


class TestPage:
    def test_a_function_answers_what_the_page_shows(self, call, comparer):
        answers = call("words", TEXT, "play", "layer 1")
        comparison = comparer.compare(TEXT, "play", "layer 1")
        tables = [comparison.cosines, comparison.neighbors]
        for answer, table in zip(answers[:2], tables, strict=True):
            assert answer["headers"] == list(table.columns)
            assert answer["data"] == table.to_numpy().tolist()

    def test_models_of_one_task_are_side_by_side(self, call, archives):
        text = "Angela <b>Merkel</b> met Tim Cook ."
        assert call("ner", text) == [archive.trained.render(text) for archive in archives[:2]]

    def test_each_task_shows_its_plain_result(self, call, archives):
        for archive in archives[2:]:
            texts = archive.predictor.examples[0]
            result = archive.trained(*texts)
            expected = [archive.trained.render(*texts)]
            expected += [result[key] for key in archive.trained.result_type.texts]
            assert call(archive.trained.task, *texts) == expected

    @pytest.mark.parametrize(
        ("name", "values", "named"),
        [
            ("words", ("A game .", "<b>", "layer 1"), "&lt;b&gt;"),
            ("words", ("", "play", "layer 1"), "play"),
            ("words", ("play " * 13, "play", "layer 1"), "play"),
            ("ner", (" ",), "text"),
            ("snli", ("A .", ""), "hypo"),
        ],
    )
    def test_errors_are_sentences(self, call, name, values, named):
        assert named in call(name, *values)

    def test_eight_users_get_their_own_answers(self, call):
        texts = [f"They play {number} games ." for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda text: call("ner", text), texts))
        for number, outputs in enumerate(answers):
            # Without tags: the words, and labels and probabilities.
            assert str(number) in re.sub(r"<[^>]*>", " ", outputs[0]).split()

    def test_foreign_hosts_and_external_resources_are_refused(self, url):
        answer = open_url(url)
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        with pytest.raises(HTTPError, match="400"):
            open_url(Request(url, headers={"Host": "evil.example"}))


class TestTasks:
    def test_entailment_has_the_attention_of_both_sides(self, archives):
        (snli,) = [archive for archive in archives if archive.trained.task == "snli"]
        # Five words and two.
        (page,) = snli.values("Dogs <i> dogs", "They they")
        tables = [table.split("<tr>")[1:] for table in page.split("<table>")[1:]]
        assert [len(rows) for rows in tables] == [6, 3] and "<th>&lt;</th>" in page
        for rows in tables:
            for row in rows[1:]:
                weights = [float(cell) for cell in re.findall(r">([0-9.]+)</td>", row)]
                # Each word distributes its attention over the words of the other sentence.
                assert sum(weights) == pytest.approx(1, abs=0.02)
