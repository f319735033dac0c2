import pytest
import torch
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model

from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM


@pytest.fixture
def tagger(environment, training_configs):
    """The classifier of Table 6 with random weights, on layer 1 of the tiny biLM, and four instances."""
    params = Params.from_file(training_configs / "pos_layer.jsonnet")
    instances = list(DatasetReader.from_params(params["dataset_reader"]).read(params["validation_data_path"]))[:4]
    vocab = Vocabulary.from_instances(instances)
    torch.manual_seed(0)
    return Model.from_params(vocab=vocab, params=params["model"]).eval(), instances


class TestPosClassifier:
    def test_it_is_a_linear_classifier_of_one_layer(self, tagger):
        model, instances = tagger
        outputs = model.forward_on_instances(instances)
        elmo = Elmo.from_pretrained(TINY_BILM)
        (weight, bias) = (parameter.detach().numpy() for parameter in model.tag_projection_layer.parameters())
        names = model.vocab.get_index_to_token_vocabulary("labels")
        for instance, output in zip(instances, outputs, strict=True):
            words = [token.text for token in instance["tokens"]]
            (vectors,) = elmo.embed([words], layers=1, progress=False)
            expected = [names[index] for index in (vectors @ weight.T + bias).argmax(-1)]
            assert output["words"] == words and output["tags"] == expected

    def test_an_evaluation_has_the_scores_of_each_tag(self, tagger):
        model, instances = tagger
        outputs = model.forward_on_instances(instances)
        pairs = [
            pair
            for instance, output in zip(instances, outputs, strict=True)
            for pair in zip(instance["tags"].labels, output["tags"], strict=True)
        ]
        metrics = model.get_metrics(reset=True)
        for tag in {tag for pair in pairs for tag in pair}:
            right = pairs.count((tag, tag))
            n_gold, n_predicted = (sum(pair[side] == tag for pair in pairs) for side in (0, 1))
            assert metrics[f"precision-{tag}"] == pytest.approx(right / n_predicted if n_predicted else 0)
            assert metrics[f"recall-{tag}"] == pytest.approx(right / n_gold if n_gold else 0)
        assert model.get_metrics().keys() == {"accuracy", "accuracy3"}
