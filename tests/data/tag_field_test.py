import pytest
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.tag_field import TagField


def instance(tags: list[str], prefixes: str = "BI") -> Instance:
    text = TextField([Token(f"w{number}") for number in range(len(tags))], {"tokens": SingleIdTokenIndexer()})
    return Instance({"tokens": text, "tags": TagField(tags, text, prefixes=prefixes, labels="kinds")})


class TestTagField:
    @pytest.mark.parametrize(("prefixes", "expected"), [("BI", {"O", "B-X", "I-X"}), ("BILU", {"O", *"BILU"})])
    def test_a_label_has_all_tags_of_the_scheme(self, prefixes, expected):
        """Oracle: by hand."""
        vocab = Vocabulary.from_instances([instance(["O", "B-X"], prefixes)])
        known = vocab.get_token_to_index_vocabulary("labels")
        assert set(known) == {tag if "-" in tag or tag == "O" else f"{tag}-X" for tag in expected}

    def test_tags_that_are_there_come_first(self):
        """Oracle: AllenNLP numbers by frequency; what is added counts as one."""
        vocab = Vocabulary.from_instances([instance(["I-X", "I-X", "O", "O", "O"])])
        assert vocab.get_index_to_token_vocabulary("labels") == {0: "O", 1: "I-X", 2: "B-X"}

    def test_a_tag_of_a_known_label_is_indexed(self):
        """Oracle: the vocabulary's number."""
        vocab = Vocabulary.from_instances([instance(["B-X"])])
        other = instance(["I-X"])
        other.index_fields(vocab)
        tensor = other.as_tensor_dict()["tags"]
        assert tensor.tolist() == [vocab.get_token_index("I-X", "labels")]

    def test_an_unknown_label_is_named(self):
        """Oracle: the message has the labels of both sides, and the sentence."""
        vocab = Vocabulary.from_instances([instance(["B-X", "O"])])
        with pytest.raises(ValueError, match=r"the kinds must be those of the training \(X\), .* 'w0 w1' has Y, Z: "):
            instance(["B-Z", "I-Y"]).index_fields(vocab)
