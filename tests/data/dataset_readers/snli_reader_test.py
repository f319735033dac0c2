import json

from allennlp.common import Params
from allennlp.data import DatasetReader, Instance

from elmo_tasks.data import SnliReader

PAIR = {"gold_label": "neutral", "sentence1": "A man isn't here.", "sentence2": "It rains"}
WORDS = (["A", "man", "is", "n't", "here", "."], ["It", "rains"])


def content_of(instance: Instance) -> tuple[list[str], list[str], str | None]:
    premise, hypothesis = (
        [token.text for token in instance[name].tokens] for name in ("premise", "hypothesis")
    )
    return premise, hypothesis, instance["label"].label if "label" in instance.fields else None


class TestSnliReader:
    def test_the_pairs_match_allennlps(self, fixtures_root):
        import allennlp_models.pair_classification  # noqa: F401

        file = str(fixtures_root / "snli" / "train.jsonl")
        theirs = DatasetReader.from_params(
            Params(
                {
                    "type": "snli",
                    "tokenizer": {"type": "spacy_blank"},
                    "combine_input_fields": False,
                }
            )
        )
        expected = [
            (
                [token.text for token in instance["premise"].tokens],
                [token.text for token in instance["hypothesis"].tokens],
                instance["label"].label,
            )
            for instance in theirs.read(file)
        ]
        assert len(expected) == 90
        assert [content_of(instance) for instance in SnliReader().read(file)] == expected

    def test_pairs_without_agreement_are_skipped_but_predicted(self, tmp_path):
        path = tmp_path / "file.jsonl"
        pairs = {**PAIR, "gold_label": "-", "pairID": "a"}, {**PAIR, "pairID": "b"}
        path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
        reader = SnliReader()
        assert [content_of(instance) for instance in reader.read(str(path))] == [
            (*WORDS, "neutral")
        ]
        reader.reads_gold = False
        instances = list(reader.read(str(path)))
        assert [content_of(instance) for instance in instances] == [(*WORDS, None)] * 2
        assert [instance["metadata"]["pairID"] for instance in instances] == ["a", "b"]
