import hashlib
import json

from allennlp.data import DatasetReader

from elmo_tasks.paper.plan import size_of, write_subset
from tests.paths import FIXTURES

SOURCES = {"snli": FIXTURES / "snli" / "train.jsonl", "srl": FIXTURES / "srl" / "train"}


class TestWriteSubset:
    def test_a_subset_is_chosen_by_digests_and_contained_in_larger_subsets(self, tmp_path):
        pairs = pairs_of(SOURCES["snli"])
        total = size_of(SOURCES["snli"])
        small, large = (pairs_of(write_subset(SOURCES["snli"], size, tmp_path)) for size in (7, 20))
        assert len(small) == 7 and len(large) == 20
        assert [pair for pair in pairs if pair in small] == small and all(
            pair in large for pair in small
        )
        first = min(range(total), key=lambda index: hashlib.sha256(str(index).encode()).digest())
        labelled = [pair for pair in pairs if pair["gold_label"] != "-"]
        assert labelled[first] in small

    def test_sentences_of_a_folder_are_read_by_the_reader(self, environment, tmp_path):
        part = write_subset(SOURCES["srl"], 3, tmp_path)
        instances = list(DatasetReader.by_name("elmo_srl")().read(str(part)))
        assert len({tuple(map(str, instance["tokens"])) for instance in instances}) == 3

    def test_without_data_nothing_is_written(self, tmp_path):
        assert size_of(tmp_path / "train.jsonl") is None
        assert not write_subset(tmp_path / "train.jsonl", 3, tmp_path / "subsets").exists()


def pairs_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
