import pytest
from allennlp.data import Instance, Token, Vocabulary
from allennlp.data.fields import TextField

from elmo_tasks.data.known_tags_field import KnownTagsField


def field(*tags: str) -> KnownTagsField:
    return KnownTagsField(tags, TextField([Token(f"w{n}") for n in range(len(tags))]), "file, line 3")


class TestKnownTagsField:
    def test_known_tags_get_their_numbers(self):
        """Oracle: the vocabulary, in the namespace that `simple_tagger` reads."""
        vocab = Vocabulary.from_instances([Instance({"tags": field("A", "B", "A")})])
        other = field("B", "A")
        other.index(vocab)
        numbers = other.as_tensor(other.get_padding_lengths()).tolist()
        assert [vocab.get_token_from_index(number, "labels") for number in numbers] == ["B", "A"]

    def test_an_unknown_tag_is_named(self):
        """Oracle: the message says place, word, tag, and the tags of the training."""
        vocab = Vocabulary.from_instances([Instance({"tags": field("A", "B")})])
        with pytest.raises(
            ValueError, match=r"file, line 3: tags must be those of the training \(A, B\), but 'w1' has"
        ):
            field("A", "C").index(vocab)
