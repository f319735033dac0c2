import json

from allennlp.common import Params
from allennlp.data import DatasetReader, Instance

from elmo_tasks.data import SnliReader
from tests.data.dataset_readers.instances import label_of, words_in

PAIR = {"gold_label": "neutral", "sentence1": "A man isn't here.", "sentence2": "It rains"}
PREMISE = ["A", "man", "is", "n't", "here", "."]
HYPOTHESIS = ["It", "rains"]


def content_of(instance: Instance) -> tuple[list[str], list[str], str | None]:
    return words_in(instance["premise"]), words_in(instance["hypothesis"]), label_of(instance)


class TestSnliReader:
    def test_the_pairs_match_allennlps(self, fixtures_root):
        import allennlp_models.pair_classification  # noqa: F401

        file = str(fixtures_root / "snli" / "train.jsonl")
        params = {"type": "snli", "tokenizer": "spacy_blank", "combine_input_fields": False}
        allennlp_reader = DatasetReader.from_params(Params(params))
        expected = list(map(content_of, allennlp_reader.read(file)))
        assert len(expected) == 90
        assert list(map(content_of, SnliReader().read(file))) == expected

    def test_pairs_without_agreement_are_skipped_but_predicted(self, tmp_path):
        path = tmp_path / "file.jsonl"
        pairs = [{**PAIR, "gold_label": "-", "pairID": "a"}, {**PAIR, "pairID": "b"}]
        path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        reader = SnliReader()
        (instance,) = reader.read(str(path))
        assert content_of(instance) == (PREMISE, HYPOTHESIS, "neutral")
        reader.reads_gold = False
        instances = list(reader.read(str(path)))
        assert [instance["metadata"]["pairID"] for instance in instances] == ["a", "b"]
        for instance in instances:
            assert content_of(instance) == (PREMISE, HYPOTHESIS, None)
