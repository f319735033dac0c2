import hashlib
import json
from pathlib import Path
from typing import Any

from allennlp.data import DatasetReader

from elmo_tasks.paper.plan import size_of, write_subset
from tests.paths import FIXTURES

SOURCES = {"snli": FIXTURES / "snli" / "train.jsonl", "srl": FIXTURES / "srl" / "train"}


class TestWriteSubset:
    def test_a_subset_is_chosen_by_digests_and_contained_in_larger_subsets(self, tmp_path):
        pairs = pairs_of(SOURCES["snli"])
        total = size_of(SOURCES["snli"])
        small = pairs_of(write_subset(SOURCES["snli"], 7, tmp_path))
        large = pairs_of(write_subset(SOURCES["snli"], 20, tmp_path))
        assert len(small) == 7
        assert len(large) == 20
        assert all(pair in large for pair in small)
        # In the order of the file.
        assert [pair for pair in pairs if pair in small] == small

        def digest(index: int) -> bytes:
            return hashlib.sha256(str(index).encode()).digest()

        labelled = [pair for pair in pairs if pair["gold_label"] != "-"]
        assert labelled[min(range(total), key=digest)] in small

    def test_sentences_of_a_folder_are_read_by_the_reader(self, environment, tmp_path):
        subset = write_subset(SOURCES["srl"], 3, tmp_path)
        reader = DatasetReader.by_name("elmo_srl")()
        sentences = {str(instance["tokens"].tokens) for instance in reader.read(str(subset))}
        assert len(sentences) == 3

    def test_without_data_nothing_is_written(self, tmp_path):
        assert size_of(tmp_path / "train.jsonl") is None
        assert not write_subset(tmp_path / "train.jsonl", 3, tmp_path / "subsets").exists()


def pairs_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
