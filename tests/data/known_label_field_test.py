import pickle

import pytest
import torch
from allennlp.data import Batch, Instance, Vocabulary
from allennlp.data.fields import LabelField

from elmo_tasks.data.known_label_field import KnownLabelField


class TestKnownLabelField:
    def test_a_known_label_is_that_of_allennlp(self):
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
