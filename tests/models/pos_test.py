import pytest
import torch
from allennlp.common import Params
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from sklearn.metrics import classification_report
from torch.nn.functional import linear

from elmo_tasks.vectors.elmo import Elmo
from tests.paths import TINY_BILM


@pytest.fixture
def tagger(environment, training_configs):
    """
    The classifier of Table 6 with random weights, on layer 1 of the tiny biLM, and four instances.
    """
    params = Params.from_file(training_configs / "pos_layer.jsonnet")
    reader = DatasetReader.from_params(params["dataset_reader"])
    instances = list(reader.read(params["validation_data_path"]))[:4]
    vocab = Vocabulary.from_instances(instances)
    torch.manual_seed(0)
    return Model.from_params(vocab=vocab, params=params["model"]).eval(), instances


class TestPosClassifier:
    def test_it_is_a_linear_classifier_of_one_layer(self, tagger):
        model, instances = tagger
        outputs = model.forward_on_instances(instances)
        elmo = Elmo.from_pretrained(TINY_BILM)
        weight, bias = model.tag_projection_layer.parameters()
        names = model.vocab.get_index_to_token_vocabulary("labels")
        for instance, output in zip(instances, outputs, strict=True):
            words = [token.text for token in instance["tokens"]]
            (vectors,) = elmo.embed([words], layers=1, progress=False)
            logits = linear(torch.from_numpy(vectors), weight, bias)
            assert output["words"] == words
            assert output["tags"] == [names[number] for number in logits.argmax(-1).tolist()]

    def test_an_evaluation_has_the_scores_of_each_tag(self, tagger):
        model, instances = tagger
        outputs = model.forward_on_instances(instances)
        gold = []
        predicted = []
        for instance, output in zip(instances, outputs, strict=True):
            gold += instance["tags"].labels
            predicted += output["tags"]
        metrics = model.get_metrics(reset=True)
        report = classification_report(gold, predicted, output_dict=True, zero_division=0.0)
        for tag in set(gold + predicted):
            assert metrics[f"precision-{tag}"] == pytest.approx(report[tag]["precision"])
            assert metrics[f"recall-{tag}"] == pytest.approx(report[tag]["recall"])
        assert metrics["macro_f1"] == pytest.approx(report["macro avg"]["f1-score"])
        assert model.get_metrics().keys() == {"accuracy", "accuracy3", "macro_f1"}

    def test_label_weights(self, make_model):
        """The losses of words with these tags count more, among as many words."""
        made = make_model("pos_tagger", [], "{ model+: { label_weights: { NN: 3 } } }")
        instance = next(instance for instance in made.instances if "NN" in instance["tags"].labels)
        output = made.model(**made.tensors([instance]))
        losses = []
        rows = output["logits"][0].log_softmax(-1)
        for row, tag in zip(rows, instance["tags"].labels, strict=True):
            loss = -row[made.model.vocab.get_token_index(tag, "labels")].item()
            losses.append(3 * loss if tag == "NN" else loss)
        assert output["loss"].item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)
