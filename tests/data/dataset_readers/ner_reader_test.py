from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary

from elmo_tasks.data import NerReader
from tests.data.dataset_readers.instances import TaggedWords, read_tagged, tagged_words

WORDS = ["New", "York", "and", "Paris", "Ann"]
BIOUL = ["B-LOC", "L-LOC", "O", "U-LOC", "U-PER"]
SCHEMES = {
    "IOB1": ["I-LOC", "I-LOC", "O", "I-LOC", "I-PER"],
    "BIO": ["B-LOC", "I-LOC", "O", "B-LOC", "B-PER"],
    "BIOES": ["B-LOC", "E-LOC", "O", "S-LOC", "S-PER"],
    "BIOUL": BIOUL,
}


def read(path: Path, content: str, reads_gold: bool = True) -> list[TaggedWords]:
    """Words and tags of the instances, from the fields that a model receives."""
    reader = NerReader()
    reader.reads_gold = reads_gold
    return read_tagged(reader, path, content)


class TestNerReader:
    @pytest.mark.parametrize("scheme", SCHEMES)
    @pytest.mark.parametrize(
        "middle", ["", "NNP ", "NNP I-NP "], ids=["2 columns", "3 columns", "4 columns"]
    )
    def test_every_scheme_and_number_of_columns_is_read_as_bioul(self, path, scheme, middle):
        lines = [f"{word} {middle}{tag}" for word, tag in zip(WORDS, SCHEMES[scheme], strict=True)]
        assert read(path, "\n".join(lines) + "\n") == [(WORDS, BIOUL)]

    def test_the_spans_match_allennlps(self, fixtures_root):
        import allennlp_models.tagging  # noqa: F401

        file = str(fixtures_root / "ner" / "dev.txt")
        params = {"type": "conll2003", "convert_to_coding_scheme": "BIOUL"}
        allennlp_reader = DatasetReader.from_params(Params(params))
        expected = list(map(tagged_words, allennlp_reader.read(file)))
        assert len(expected) > 20
        assert list(map(tagged_words, NerReader().read(file))) == expected

    @pytest.mark.parametrize("reads_gold", [True, False])
    def test_comments_are_not_words(self, path, reads_gold):
        """The first is MultiCoNER's, with as many columns as a line of words."""
        content = "# id 7\tdomain=en\nAnn _ _ B-PER\n# _ _ O\n\n# sent_id = x\nRome _ _ B-LOC\n"
        expected = [(["Ann", "#"], None), (["Rome"], None)]
        if reads_gold:
            expected = [(["Ann", "#"], ["U-PER", "O"]), (["Rome"], ["U-LOC"])]
        assert read(path, content, reads_gold) == expected

    def test_a_file_of_words_has_no_tags(self, path):
        expected = [(["New", "York"], None), (["Paris"], None)]
        assert read(path, "New\nYork\n\nParis\n", reads_gold=False) == expected

    @pytest.mark.parametrize(
        "content",
        [
            "a\tO\nb\tB-PER\n\nc\tO\n",
            "a O\r\nb B-PER\r\n\r\nc O\r\n",
            "a O\nb B-PER\n\nc O",
            "\n\na  O \nb B-PER\n \n\n\t\nc O\n\n\n",
            "-DOCSTART- O\n\na O\nb B-PER\n\n-DOCSTART- O\nc O\n",
            "-DOCSTART- O\na O\nb B-PER\n-DOCSTART- O\n\nc O\n",
        ],
        ids=[
            "tabs",
            "CRLF",
            "no final newline",
            "spare empty lines",
            "documents",
            "documents without empty lines",
        ],
    )
    def test_sentences_are_found_in_any_layout(self, path, content):
        assert read(path, content) == [(["a", "b"], ["O", "U-PER"]), (["c"], ["O"])]

    def test_a_type_of_entity_has_all_its_tags_in_the_vocabulary(self, path):
        path.write_text("a B-PER\n\nb O\nc B-LOC\nd I-LOC\n")
        vocabulary = Vocabulary.from_instances(NerReader().read(str(path)))
        tags = {"O", "B-PER", "I-PER", "L-PER", "U-PER", "B-LOC", "I-LOC", "L-LOC", "U-LOC"}
        assert set(vocabulary.get_token_to_index_vocabulary("labels")) == tags

    def test_a_no_break_space_is_a_part_of_its_word_and_a_byte_order_mark_is_not(self, path):
        assert read(path, "\ufeff-DOCSTART- O\n\n10\u00a0000 O\n") == [(["10\u00a0000"], ["O"])]
