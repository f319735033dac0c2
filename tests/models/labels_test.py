import numpy as np
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_tasks.models.labels import labels_of, readable_labels, weights_of


def test_the_label_is_the_most_probable_one():
    logits = torch.tensor([[0.0, np.log(3.0)], [np.log(4.0), 0.0]])
    readable = readable_labels(logits, labels_of(Vocabulary({"labels": {"no": 2, "yes": 1}})))
    assert readable["label"] == ["yes", "no"]
    assert [list(row) for row in readable["probabilities"]] == [["no", "yes"]] * 2
    expected = [pytest.approx([0.25, 0.75]), pytest.approx([0.8, 0.2])]
    assert [list(row.values()) for row in readable["probabilities"]] == expected


class TestWeightsOf:
    def test_a_tag_has_the_weight_of_its_label_or_its_own(self):
        labels = ["O", "B-PER", "I-PER", "B-LOC"]
        weights = weights_of(labels, {"PER": 2.0, "I-PER": 5.0, "O": 0.5})
        assert weights is not None and weights.tolist() == [0.5, 2.0, 5.0, 1.0]
        assert weights_of(labels, None) is None

    def test_an_unknown_label_is_an_error(self):
        with pytest.raises(ConfigurationError, match="of LOC, O, PER, got 'ORG'"):
            weights_of(["O", "B-PER", "B-LOC"], {"ORG": 2.0})
