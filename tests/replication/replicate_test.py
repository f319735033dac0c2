"""Tests of what a plan makes of its finished runs."""

import json
import shutil

import pytest

from elmo_tasks.replication import Exhibit, replicate
from tests.paths import RUN_RESULTS

# Of SNLI all that Figure 1 compares, of NER and SRL one side alone.
NAMES = [
    *(f"snli/{variant}/{name}.json" for variant in ("baseline", "both") for name in ("1", "2", "1-1800")),
    "ner/baseline/1.json",
    "srl/input/1.json",
    "srl/input/1-1053.json",
]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Of some runs that ship, as runs of the code that is here."""
    digests = {}
    for name in NAMES:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(RUN_RESULTS / name, target)
        content = json.loads(target.read_text())
        digests[content["task"], content["variant"]] = content["digests"]["computation"]
    monkeypatch.setattr(
        replicate, "computation_digest", lambda task, variant: digests.get((task, variant.name), "none")
    )
    return replicate.replication_of("open", data=None, results=None, runs=tmp_path, with_data=False).results()


def score(name: str) -> float:
    return json.loads((RUN_RESULTS / name).read_text())["dev"]


class TestResults:
    def test_tables_and_curves_are_of_tasks_that_compare_two_models(self, results):
        """Oracle: by hand from the files; the whole training set has both seeds of Table 1, its part one."""
        assert results.tables[Exhibit.TABLE_1].tasks() == results.tables[Exhibit.TABLE_2].tasks() == ["snli"]
        # Table 3 has both places, and neither alone.
        assert Exhibit.TABLE_3 not in results.tables and Exhibit.TABLE_6 not in results.tables
        sizes = {
            (row["variant"], row["size"]): (row["mean"], row["n"]) for row in results.sizes if row["task"] == "snli"
        }
        whole = (score("snli/both/1.json") + score("snli/both/2.json")) / 2
        assert sizes["both", 18000] == (pytest.approx(whole), 2)
        assert sizes["both", 1800] == (score("snli/both/1-1800.json"), 1) and len(sizes) == 4
        assert {row["n"] for row in results.epochs if row["task"] == "snli"} == {2}
        assert results.training_sizes == {"snli": 18000, "srl": 10532}
        # The weights of the layers compare nothing.
        assert {row["task"] for row in results.mixes} == {"snli", "srl"}
