"""
Programs and configs of AllenNLP's users, as they wrote them for its last release, without ELMo.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import spacy
import transformers
from allennlp.common.util import import_module_and_submodules
from allennlp.interpret.saliency_interpreters import SimpleGradient
from allennlp.predictors import Predictor

pytestmark = pytest.mark.weekly

Allennlp = Callable[..., str]

READER = """
from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import LabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import WhitespaceTokenizer


@DatasetReader.register("reviews")
class ReviewReader(DatasetReader):
    def __init__(self, tokenizer=None, token_indexers=None, **kwargs):
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self.tokenizer = tokenizer or WhitespaceTokenizer()
        self.token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}

    def text_to_instance(self, text, label=None):
        fields = {"text": TextField(self.tokenizer.tokenize(text))}
        if label is not None:
            fields["label"] = LabelField(label)
        return Instance(fields)

    def apply_token_indexers(self, instance):
        instance["text"].token_indexers = self.token_indexers

    def _read(self, file_path):
        with open(file_path) as lines:
            for line in self.shard_iterable(lines):
                label, _, text = line.strip().partition(" ")
                yield self.text_to_instance(text, label)
"""

MODEL = """
import torch
from allennlp.models import Model
from allennlp.modules import Seq2VecEncoder, TextFieldEmbedder
from allennlp.nn import util
from allennlp.predictors import Predictor
from allennlp.training.metrics import CategoricalAccuracy


@Model.register("simple_classifier")
class SimpleClassifier(Model):
    default_predictor = "reviews"

    def __init__(self, vocab, embedder: TextFieldEmbedder, encoder: Seq2VecEncoder):
        super().__init__(vocab)
        self.embedder, self.encoder = embedder, encoder
        self.classifier = torch.nn.Linear(encoder.get_output_dim(), vocab.get_vocab_size("labels"))
        self.accuracy = CategoricalAccuracy()

    def forward(self, text, label=None):
        logits = self.classifier(self.encoder(self.embedder(text), util.get_text_field_mask(text)))
        output = {"probs": torch.softmax(logits, -1)}
        if label is not None:
            self.accuracy(logits, label)
            output["loss"] = torch.nn.functional.cross_entropy(logits, label)
        return output

    def make_output_human_readable(self, output):
        labels = [self.vocab.get_token_from_index(int(i), "labels") for i in output["probs"].argmax(-1)]
        return {**output, "label": labels}

    def get_metrics(self, reset=False):
        return {"accuracy": self.accuracy.get_metric(reset)}


@Predictor.register("reviews")
class ReviewPredictor(Predictor):
    def _json_to_instance(self, json_dict):
        return self._dataset_reader.text_to_instance(json_dict["text"])

    def predictions_to_labeled_instances(self, instance, outputs):
        from allennlp.data.fields import LabelField

        labeled = instance.duplicate()
        labeled.add_field("label", LabelField(int(outputs["probs"].argmax()), skip_indexing=True))
        return [labeled]
"""

CONFIG = """
// An old project has comments, and a trailing comma.
local dim = 6;
{
    "dataset_reader": {"type": "reviews"},
    "train_data_path": "reviews.txt",
    "validation_data_path": "reviews.txt",
    "model": {
        "type": "simple_classifier",
        "embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": dim, "sparse": true}}},
        "encoder": {"type": "bag_of_embeddings", "embedding_dim": dim},
    },
    "data_loader": {"batch_size": 2, "shuffle": true},
    "trainer": {
        "optimizer": {"type": "dense_sparse_adam", "lr": 0.1}, "num_epochs": 8, "grad_norm": 1.0, "cuda_device": -1,
        "learning_rate_scheduler": {"type": "reduce_on_plateau", "verbose": true}, "validation_metric": "+accuracy",
    },
}
"""


@pytest.fixture
def allennlp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Allennlp:
    """Runs a command in a new process, in the folder of a project."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "allennlp", *map(str, arguments)]
        process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert process.returncode == 0, process.stderr[-3000:]
        return process.stdout

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The shape of the project in AllenNLP's guide."""
    (tmp_path / "my_project").mkdir()
    (tmp_path / "my_project" / "__init__.py").write_text("from my_project import model, reader\n")
    (tmp_path / "my_project" / "reader.py").write_text(READER)
    (tmp_path / "my_project" / "model.py").write_text(MODEL)
    (tmp_path / "config.jsonnet").write_text(CONFIG)
    (tmp_path / "reviews.txt").write_text("good a fine film\nbad a dull film\n" * 8)
    return tmp_path


class TestProjectOfTheGuide:
    def test_its_commands_run(self, project, allennlp):
        package = ("--include-package", "my_project")
        allennlp("train", "config.jsonnet", "-s", "out", *package)
        metrics = json.loads((project / "out" / "metrics.json").read_text())
        assert metrics["best_validation_accuracy"] == 1
        output = ("--output-file", "scores.json")
        allennlp("evaluate", "out/model.tar.gz", "reviews.txt", *output, *package)
        scores = json.loads((project / "scores.json").read_text())
        assert scores["accuracy"] == 1
        (project / "texts.jsonl").write_text('{"text": "a dull film"}\n')
        output = ("--output-file", "labels.jsonl")
        allennlp("predict", "out/model.tar.gz", "texts.jsonl", *output, *package)
        prediction = json.loads((project / "labels.jsonl").read_text())
        assert prediction["label"] == "bad"
        allennlp("find-lr", "config.jsonnet", "-s", "rates", "--num-batches", 20, *package)
        assert (project / "rates" / "lr-losses.png").exists()
        import_module_and_submodules("my_project")
        predictor = Predictor.from_path(project / "out" / "model.tar.gz", trusted=True)
        interpreter = SimpleGradient(predictor)
        (saliency,) = interpreter.saliency_interpret_from_json({"text": "a dull film"}).values()
        assert len(saliency["grad_input_1"]) == 3

    def test_two_processes_train(self, project, allennlp):
        two = {"distributed": {"cuda_devices": [-1, -1]}, "trainer.num_epochs": 2}
        # gloo sums no sparse gradients.
        two |= {"model.embedder.token_embedders.tokens.sparse": False, "trainer.optimizer": "adam"}
        options = ("-o", json.dumps(two), "--include-package", "my_project")
        allennlp("train", "config.jsonnet", "-s", "out", *options)
        assert (project / "out" / "model.tar.gz").exists()


@pytest.fixture
def tiny_spanbert(tmp_path: Path) -> Path:
    """
    A transformer with letters as wordpieces, in a folder, so archives that name it must be trusted.
    """
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary += letters
    vocabulary += [f"##{letter}" for letter in letters]
    sizes = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
    config = transformers.BertConfig(vocab_size=len(vocabulary), **sizes)
    transformers.BertModel(config).save_pretrained(tmp_path / "spanbert")
    (tmp_path / "spanbert" / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    return tmp_path / "spanbert"


TRAINER = {
    "num_epochs": 1,
    "optimizer": {"type": "huggingface_adamw", "correct_bias": False},
    "cuda_device": -1,
}


class TestArchivesOfAllennlpModels:
    """
    Archives as of the published models, but tiny: written by AllenNLP's classes, then opened by a
    command.
    """

    def test_srl_bert_predicts(self, tmp_path, allennlp, tiny_spanbert, fixtures_root):
        config = {
            "dataset_reader": {"type": "srl", "bert_model_name": str(tiny_spanbert)},
            "train_data_path": str(fixtures_root / "srl" / "dev"),
            "model": {
                "type": "srl_bert",
                "bert_model": str(tiny_spanbert),
                "embedding_dropout": 0.1,
            },
            "data_loader": {"batch_size": 8},
            "trainer": {
                **TRAINER,
                "learning_rate_scheduler": {"type": "slanted_triangular"},
                "grad_norm": 1.0,
            },
        }
        (tmp_path / "srl.json").write_text(json.dumps(config))
        allennlp("train", "srl.json", "-s", "srl")
        # Instead of en_core_web_sm.
        nlp = spacy.blank("en")
        nlp.add_pipe("attribute_ruler").add([[{"LOWER": "barks"}]], {"POS": "VERB"})
        nlp.to_disk(tmp_path / "verbs")
        (tmp_path / "sentences.jsonl").write_text('{"sentence": "The dog barks."}\n')
        arguments = json.dumps({"language": str(tmp_path / "verbs")})
        allennlp(
            "predict",
            "srl/model.tar.gz",
            "sentences.jsonl",
            "--output-file",
            "roles",
            "--predictor-args",
            arguments,
            "--trust",
        )
        predicted = json.loads((tmp_path / "roles").read_text())
        assert predicted["words"] == ["The", "dog", "barks", "."]
        assert [(verb["verb"], len(verb["tags"])) for verb in predicted["verbs"]] == [("barks", 4)]

    def test_spanbert_coreference_predicts(self, tmp_path, allennlp, tiny_spanbert, fixtures_root):
        transformer = {
            "type": "pretrained_transformer_mismatched",
            "model_name": str(tiny_spanbert),
            "max_length": 64,
        }
        span = 3 * 8 + 20
        feedforward = {"num_layers": 1, "hidden_dims": 8, "activations": "relu"}
        config = {
            "dataset_reader": {
                "type": "coref",
                "token_indexers": {"tokens": transformer},
                "max_span_width": 5,
            },
            "train_data_path": str(fixtures_root / "coref" / "dev.conll"),
            "model": {
                "type": "coref",
                "text_field_embedder": {"token_embedders": {"tokens": transformer}},
                "context_layer": {"type": "pass_through", "input_dim": 8},
                "mention_feedforward": {"input_dim": span, **feedforward},
                "antecedent_feedforward": {"input_dim": 3 * span + 20, **feedforward},
                "feature_size": 20,
                "max_span_width": 5,
                "spans_per_word": 0.4,
                "max_antecedents": 50,
                "coarse_to_fine": True,
                "inference_order": 2,
            },
            "data_loader": {"batch_size": 1},
            "trainer": TRAINER,
        }
        (tmp_path / "coref.json").write_text(json.dumps(config))
        allennlp("train", "coref.json", "-s", "coref")
        text = " ".join(["The dog barks at the keeper, and then it sleeps."] * 4)
        assert len(text) > 3 * 64, "several parts"
        (tmp_path / "texts.jsonl").write_text(json.dumps({"document": text}) + "\n")
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        nlp.to_disk(tmp_path / "english")
        arguments = json.dumps({"language": str(tmp_path / "english")})
        allennlp(
            "predict",
            "coref/model.tar.gz",
            "texts.jsonl",
            "--output-file",
            "chains",
            "--predictor-args",
            arguments,
            "--trust",
        )
        predicted = json.loads((tmp_path / "chains").read_text())
        assert len(predicted["document"]) == 48 and isinstance(predicted["clusters"], list)
