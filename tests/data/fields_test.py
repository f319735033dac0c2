import pickle
from collections import defaultdict
from copy import deepcopy

import pytest
import torch
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import LabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer, TokenCharactersIndexer

from elmo_tasks.data import NerReader, PosReader, SnliReader, SrlReader, SstReader
from elmo_tasks.data.fields import KnownLabelField, KnownTagsField, RepeatedTextField, SpanTagsField, without_gold


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
    return Instance(
        {"tokens": text, "tags": SpanTagsField(tags, text, "file, line 3", prefixes=prefixes, labels="kinds")}
    )


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
        with pytest.raises(
            ValueError, match=r"file, line 3: the kinds must be those of the training \(X\), .* 'w0 w1' has Y, Z: "
        ):
            span_tags(["B-Z", "I-Y"]).index_fields(vocab)


class CountingIndexer(SingleIdTokenIndexer):
    """An indexer that counts how often it is asked."""

    calls = 0

    def tokens_to_indices(self, tokens, vocabulary):
        self.calls += 1
        return super().tokens_to_indices(tokens, vocabulary)


def indexers_of(words: SingleIdTokenIndexer) -> dict:
    return {"words": words, "characters": TokenCharactersIndexer(min_padding_length=1)}


class TestRepeatedTextField:
    def test_all_instances_are_counted_and_indexed_as_in_allennlp(self):
        """Oracle: AllenNLP's `TextField`s: the same items in the same order, counts and tensors."""
        texts, counters, tensors = (["b", "a", "b"], ["c", "b"]), [], []
        for kind in (TextField, RepeatedTextField):
            fields = [kind([Token(word) for word in words]) for words in texts]
            for field in fields:
                field.token_indexers = indexers_of(SingleIdTokenIndexer())
            # The first text is counted again after the second.
            instances = [Instance({"text": fields[number]}) for number in (0, 0, 1, 0, 0)]
            counters.append(defaultdict(lambda: defaultdict(int)))
            for instance in instances:
                instance.count_vocab_items(counters[-1])
            vocab = Vocabulary(counters[-1])
            batch = Batch(instances)
            batch.index_instances(vocab)
            of_batch = batch.as_tensor_dict()["text"]
            tensors.append([of_batch["words"]["tokens"], of_batch["characters"]["token_characters"]])
        theirs, ours = ({name: list(counts.items()) for name, counts in of.items()} for of in counters)
        assert theirs == ours
        assert all(torch.equal(*pair) for pair in zip(*tensors, strict=True))

    def test_it_is_indexed_once_for_a_vocabulary(self):
        """Oracle: the calls of the indexer: a vocabulary, indexers or a text that are others count again."""
        words, vocab, field = (
            CountingIndexer(),
            Vocabulary({"tokens": {"a": 1, "b": 1}}),
            RepeatedTextField([Token("a")]),
        )
        field.token_indexers = {"words": words}
        for _ in range(3):
            Instance({"text": field}).index_fields(vocab)
        assert words.calls == 1
        field.index(Vocabulary({"tokens": {"b": 2, "a": 1}}))
        assert words.calls == 2 and field._indexed_tokens == {"words": {"tokens": [3]}}
        field.tokens[0] = Token("b")
        field.index(vocab)
        assert words.calls == 3 and field._indexed_tokens == {"words": {"tokens": [3]}}
        field.token_indexers = {"other": words}
        field.index(vocab)
        assert words.calls == 4 and set(field._indexed_tokens) == {"other"}

    def test_a_text_that_changes_is_counted_again(self):
        """Oracle: counts by hand."""
        field = RepeatedTextField([Token("a")])
        field.token_indexers = {"words": SingleIdTokenIndexer()}
        counter: dict = defaultdict(lambda: defaultdict(int))
        for word, times in (("a", 3), ("b", 2)):
            field.tokens[0] = Token(word)
            for _ in range(times):
                field.count_vocab_items(counter)
        assert counter == {"tokens": {"a": 3, "b": 2}}

    @pytest.mark.parametrize(
        "copy", [deepcopy, RepeatedTextField.duplicate, lambda field: pickle.loads(pickle.dumps(field))]
    )
    def test_a_copy_is_equal_and_stands_alone(self, copy):
        """Oracle: `==` on both sides, also with a `TextField`; its ids after the copy has been changed."""
        field = RepeatedTextField([Token("a")])
        field.token_indexers = {"words": SingleIdTokenIndexer()}
        vocab = Vocabulary({"tokens": {"a": 1, "b": 1}})
        field.index(vocab)
        plain = TextField([Token("a")], field.token_indexers)
        assert field != plain
        plain.index(vocab)
        copied = copy(field)
        assert field == copied == plain == field
        copied.tokens[0] = Token("b")
        copied.index(vocab)
        assert field._indexed_tokens != copied._indexed_tokens and field != copied

    @pytest.mark.parametrize(
        ("reader", "name", "content"),
        [
            (SnliReader, "premise", '{"sentence1": "a b", "sentence2": "c", "gold_label": "neutral"}\n' * 3),
            (SrlReader, "tokens", "d 0 0 word - - - - - * * (V*) (V*) (V*) -\n"),
        ],
    )
    def test_instances_of_one_text_share_it(self, reader, name, content, tmp_path):
        """Oracle: identity in memory; three pairs of one premise, and three predicates of one sentence."""
        path = tmp_path / "file_gold_conll"
        path.write_text(content)
        fields = [instance[name] for instance in reader().read(str(path))]
        assert len(fields) == 3 and len({id(field) for field in fields}) == 1
        assert isinstance(fields[0], RepeatedTextField)


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
