import pickle

import pytest
import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import LabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data import NerReader, PosReader, SnliReader, SrlReader, SstReader
from elmo_tasks.data.fields import KnownLabelField, KnownTagsField, SpanTagsField, without_gold


class TestKnownLabelField:
    def test_a_known_label_is_indexed_as_in_allennlp(self):
        """Oracle: AllenNLP's `LabelField`: the same counts, numbers and tensors."""
        theirs, ours = (
            [Instance({"label": field}) for field in fields]
            for fields in (
                [LabelField(label) for label in "abb"],
                [KnownLabelField(label, "here") for label in "abb"],
            )
        )
        vocab = Vocabulary.from_instances(ours)
        assert vocab.get_index_to_token_vocabulary("labels") == {0: "b", 1: "a"}
        tensors = []
        for instances in (theirs, ours):
            batch = Batch(instances)
            batch.index_instances(vocab)
            tensors.append(batch.as_tensor_dict()["label"])
        assert torch.equal(*tensors)

    @pytest.mark.parametrize("known", [{"yes": 1, "no": 1}, {}])
    def test_an_unknown_label_is_named_with_its_place(self, known):
        """Oracle: the message has the place, the labels of the training and this one."""
        field = KnownLabelField("maybe", "file.txt, line 7")
        message = rf"^file.txt, line 7: .* of the training \({', '.join(known)}\), but is 'maybe'"
        with pytest.raises(ValueError, match=message):
            field.index(Vocabulary({"labels": known} if known else {}))

    def test_it_can_be_sent_to_another_process(self):
        """Oracle: the label that comes back from `pickle`, and its message, as a worker of a data loader sends it."""
        field = pickle.loads(pickle.dumps(KnownLabelField("maybe", "file.txt, line 7")))
        assert field.label == "maybe"
        with pytest.raises(ValueError, match=r"file\.txt, line 7"):
            field.index(Vocabulary())


def known_tags(*tags: str) -> KnownTagsField:
    return KnownTagsField(tags, TextField([Token(f"w{n}") for n in range(len(tags))]), "file, line 3")


class TestKnownTagsField:
    def test_known_tags_get_their_numbers(self):
        """Oracle: the vocabulary, in the namespace that `simple_tagger` reads."""
        vocab = Vocabulary.from_instances([Instance({"tags": known_tags("A", "B", "A")})])
        other = known_tags("B", "A")
        other.index(vocab)
        numbers = other.as_tensor(other.get_padding_lengths()).tolist()
        assert [vocab.get_token_from_index(number, "labels") for number in numbers] == ["B", "A"]

    def test_an_unknown_tag_is_named(self):
        """Oracle: the message says place, word, tag, and the tags of the training."""
        vocab = Vocabulary.from_instances([Instance({"tags": known_tags("A", "B")})])
        with pytest.raises(
            ValueError, match=r"file, line 3: tags must be those of the training \(A, B\), but 'w1' has"
        ):
            known_tags("A", "C").index(vocab)


def span_tags(tags: list[str], prefixes: str = "BI") -> Instance:
    text = TextField([Token(f"w{number}") for number in range(len(tags))], {"tokens": SingleIdTokenIndexer()})
    return Instance({"tokens": text, "tags": SpanTagsField(tags, text, prefixes=prefixes, labels="kinds")})


class TestSpanTagsField:
    @pytest.mark.parametrize(("prefixes", "expected"), [("BI", {"O", "B-X", "I-X"}), ("BILU", {"O", *"BILU"})])
    def test_a_label_has_all_tags_of_the_scheme(self, prefixes, expected):
        """Oracle: by hand."""
        vocab = Vocabulary.from_instances([span_tags(["O", "B-X"], prefixes)])
        known = vocab.get_token_to_index_vocabulary("labels")
        assert set(known) == {tag if "-" in tag or tag == "O" else f"{tag}-X" for tag in expected}

    def test_tags_that_occur_come_first(self):
        """Oracle: AllenNLP numbers by frequency; added tags count as one."""
        vocab = Vocabulary.from_instances([span_tags(["I-X", "I-X", "O", "O", "O"])])
        assert vocab.get_index_to_token_vocabulary("labels") == {0: "O", 1: "I-X", 2: "B-X"}

    def test_a_tag_of_a_known_label_is_indexed(self):
        """Oracle: the vocabulary's number."""
        vocab = Vocabulary.from_instances([span_tags(["B-X"])])
        other = span_tags(["I-X"])
        other.index_fields(vocab)
        tensor = other.as_tensor_dict()["tags"]
        assert tensor.tolist() == [vocab.get_token_index("I-X", "labels")]

    def test_an_unknown_label_is_named(self):
        """Oracle: the message has the labels of both sides, and the sentence."""
        vocab = Vocabulary.from_instances([span_tags(["B-X", "O"])])
        with pytest.raises(ValueError, match=r"the kinds must be those of the training \(X\), .* 'w0 w1' has Y, Z: "):
            span_tags(["B-Z", "I-Y"]).index_fields(vocab)


class TestWithoutGold:
    @pytest.mark.parametrize(
        ("reader", "words", "gold"),
        [
            (NerReader, (["a", "b"],), ["B-NEW", "O"]),
            (PosReader, (["a", "b"],), ["NEW", "NEW"]),
            (SrlReader, (["a", "b"], [1, 0]), ["B-V", "B-NEW"]),
            (SnliReader, ("a", "b"), "new"),
            (SstReader, (["a", "b"],), "4"),
        ],
    )
    def test_labels_and_tags_of_all_tasks_that_have_them_are_dropped(self, reader, words, gold):
        """Oracle: the same instance without gold; only with it does a vocabulary have to know it."""
        of_task = reader()
        with_gold, without = of_task.text_to_instance(*words, gold), of_task.text_to_instance(*words)
        of_task.apply_token_indexers(with_gold)
        vocab = Vocabulary({"labels": {"known": 1}})
        with pytest.raises(ValueError, match=r"must be (those|one) of the training"):
            with_gold.index_fields(vocab)
        dropped = without_gold(with_gold)
        assert set(dropped.fields) == set(without.fields)
        dropped.index_fields(vocab)
        assert set(with_gold.fields) > set(without.fields)
