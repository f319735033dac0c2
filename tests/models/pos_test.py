import pytest
import torch
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from sklearn.metrics import f1_score

from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM


@pytest.fixture
def tagger(environment, training_configs):
    """
    The classifier of Table 6 with random weights, on layer 1 of the tiny biLM, and four instances.
    """
    params = Params.from_file(training_configs / "pos_layer.jsonnet")
    instances = list(
        DatasetReader.from_params(params["dataset_reader"]).read(params["validation_data_path"])
    )[:4]
    vocab = Vocabulary.from_instances(instances)
    torch.manual_seed(0)
    return Model.from_params(vocab=vocab, params=params["model"]).eval(), instances


class TestPosClassifier:
    def test_it_is_a_linear_classifier_of_one_layer(self, tagger):
        model, instances = tagger
        outputs = model.forward_on_instances(instances)
        elmo = Elmo.from_pretrained(TINY_BILM)
        (weight, bias) = (
            parameter.detach().numpy() for parameter in model.tag_projection_layer.parameters()
        )
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
            assert metrics[f"precision-{tag}"] == pytest.approx(
                right / n_predicted if n_predicted else 0
            )
            assert metrics[f"recall-{tag}"] == pytest.approx(right / n_gold if n_gold else 0)
        macro_f1 = f1_score(*zip(*pairs, strict=True), average="macro", zero_division=0.0)
        assert metrics["macro_f1"] == pytest.approx(macro_f1)
        assert model.get_metrics().keys() == {"accuracy", "accuracy3", "macro_f1"}

    def test_label_weights(self, make_model):
        """The losses of words with these tags count more, among as many words."""
        made = make_model("pos_tagger", [], "{ model+: { label_weights: { NN: 3 } } }")
        instance = next(each for each in made.instances if "NN" in each["tags"].labels)
        output = made.model(**made.tensors([instance]))
        losses = []
        rows = output["logits"][0].log_softmax(-1)
        for row, tag in zip(rows, instance["tags"].labels, strict=True):
            loss = -row[made.model.vocab.get_token_index(tag, "labels")].item()
            losses.append(3 * loss if tag == "NN" else loss)
        assert output["loss"].item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)
