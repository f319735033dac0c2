"""Tests of elmo_tasks.compat.allennlp_fixes.scores."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import LabelField, TextField
from allennlp.data.instance import Instance
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import Token
from allennlp.evaluation import SimpleEvaluator
from allennlp.models import Model
from allennlp.training import GradientDescentTrainer
from allennlp.training.metric_tracker import MetricTracker
from allennlp.training.metrics import CategoricalAccuracy
from allennlp.training.util import evaluate

from elmo_tasks.data import LmDataLoader, LmReader, LmWindowDataLoader
from elmo_tasks.training import FrozenOnceCheckpointer

INSTANCES = [
    Instance({"tokens": TextField([Token(word)], {"tokens": SingleIdTokenIndexer()}), "label": LabelField(label)})
    for word, label in (("good", "yes"), ("bad", "no"))
]
UNLABELLED = [Instance({"tokens": instance["tokens"]}) for instance in INSTANCES]
VOCAB = Vocabulary.from_instances(INSTANCES)


class Classifier(Model):
    """A model that scores what has labels, as all of AllenNLP's do."""

    def __init__(self) -> None:
        super().__init__(VOCAB)
        self.scores = torch.nn.Embedding(VOCAB.get_vocab_size(), 2)
        self._accuracy = CategoricalAccuracy()

    def forward(self, tokens: Any, label: torch.Tensor | None = None) -> dict[str, Any]:  # type: ignore[override]
        logits = self.scores(tokens["tokens"]["tokens"])[:, 0]
        if label is None:
            return {"logits": logits}
        self._accuracy(logits, label)
        return {"logits": logits, "loss": torch.nn.functional.cross_entropy(logits, label)}

    def get_metrics(self, reset: bool = False) -> dict[str, float]:
        return {"accuracy": self._accuracy.get_metric(reset)}


class OurClassifier(Classifier):
    __module__ = "elmo_tasks.models.classifier"


def loader(instances: list[Instance]) -> SimpleDataLoader:
    return SimpleDataLoader(instances, batch_size=2, vocab=VOCAB)


class TestOmitScoresWithoutLabels:
    @pytest.mark.parametrize("kind", ["test", "command"])
    def test_there_are_no_scores_of_nothing(self, kind, tmp_path, caplog):
        """Oracle: the metrics, also in their file, and the warning; the predictions are there; models of others."""
        files = tmp_path / "metrics.json", tmp_path / "predictions.jsonl"

        def scored(model: Model, instances: list[Instance]) -> dict[str, Any]:
            metrics, predictions = map(str, files)
            if kind == "test":
                return evaluate(model, loader(instances), output_file=metrics, predictions_output_file=predictions)
            found: dict[str, Any] = SimpleEvaluator()(model, loader(instances), None, metrics, predictions)
            return found

        assert scored(OurClassifier(), UNLABELLED) == json.loads(files[0].read_text()) == {}
        assert "logits" in files[1].read_text()
        assert "this data has no labels: there are no scores of it" in caplog.messages
        found = scored(OurClassifier(), INSTANCES)
        assert set(found) == {"accuracy", "loss"} and json.loads(files[0].read_text()) == found
        assert scored(Classifier(), UNLABELLED) == {"accuracy": 0.0}


def trainer(
    model: Model,
    validation: list[Instance],
    folder: Any = None,
    n_epochs: int = 9,
    training: list[Instance] = INSTANCES,
) -> GradientDescentTrainer:
    """Nothing is learned, so that patience runs out after the second epoch."""
    return GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        loader(training),
        validation_data_loader=loader(validation),
        patience=1,
        num_epochs=n_epochs,
        serialization_dir=folder and str(folder),
        checkpointer=folder and FrozenOnceCheckpointer(str(folder)),
        cuda_device=torch.device("cpu"),
    )


class TestRefuseTrainingWithoutLabels:
    def test_an_epoch_without_a_score_is_an_error(self):
        """Oracle: the message; models of others are as AllenNLP has them."""
        with pytest.raises(ConfigurationError, match=r"must have labels, but this data has none"):
            trainer(OurClassifier(), UNLABELLED).train()
        assert trainer(OurClassifier(), INSTANCES).train()["epoch"] == 1
        assert "best_validation_accuracy" in trainer(Classifier(), UNLABELLED).train()

    def test_a_step_without_a_loss_is_an_error(self):
        """Oracle: the message; that of AllenNLP for models of others."""
        with pytest.raises(ConfigurationError, match=r"must have labels, but this data has none"):
            trainer(OurClassifier(), INSTANCES, training=UNLABELLED).train()
        with pytest.raises(RuntimeError, match="does not contain a 'loss' key"):
            trainer(Classifier(), INSTANCES, training=UNLABELLED).train()


class TestRefuseTrainingsThatCannotEnd:
    @pytest.mark.parametrize("name", ["f1", "accuracy"])
    def test_a_metric_must_be_one_of_the_model(self, name):
        """Oracle: the message, before the first batch; models of others are as AllenNLP has them."""
        made, of_others = trainer(OurClassifier(), INSTANCES), trainer(Classifier(), INSTANCES)
        made._metric_tracker = of_others._metric_tracker = MetricTracker(["-loss", f"+{name}"], patience=1)
        if name == "accuracy":
            assert made.train()["epoch"] == 1
            return
        with pytest.raises(ConfigurationError, match=r"must be one of accuracy, loss, reg_loss, with .* but is 'f1'"):
            made.train()
        assert made._total_batches_completed == 0 and made.model.training
        with pytest.raises(ConfigurationError, match="did not produce that metric"):
            of_others.train()

    @pytest.mark.parametrize(("name", "is_known"), [("f1-yes", True), ("reg_loss", True), ("recall-yes", False)])
    def test_metrics_of_single_labels_are_those_of_an_evaluation(self, name, is_known, monkeypatch):
        """Oracle: by hand: a score for each label is there after a batch, and scores are those of an evaluation."""

        def get_metrics(self: Model, reset: bool = False) -> dict[str, float]:
            return {} if self.training else {"f1-overall": 0.5}

        monkeypatch.setattr(OurClassifier, "get_metrics", get_metrics)
        made = trainer(OurClassifier(), INSTANCES)
        made._metric_tracker = MetricTracker(f"-{name}")
        # What AllenNLP says after the first epoch, since the metric of this model does not come.
        message = "did not produce that metric" if is_known else "must be one of f1-overall, loss, reg_loss, with"
        with pytest.raises(ConfigurationError, match=message):
            made.train()

    @pytest.mark.parametrize(
        "loader",
        [
            partial(LmDataLoader, max_tokens_per_batch=300),
            # The bad line is in none of the batches of the first epoch.
            partial(LmDataLoader, max_tokens_per_batch=300, batches_per_epoch=1),
            partial(LmWindowDataLoader, n_streams=1, window=2),
        ],
    )
    @pytest.mark.parametrize("dev_text", [b" \n\n", b"a b\nc \xff\n"])
    def test_a_dev_text_is_read_before_the_first_epoch(self, tmp_path, loader, dev_text):
        """Oracle: the message, before the first batch."""
        (tmp_path / "dev.txt").write_bytes(dev_text)
        made = trainer(OurClassifier(), INSTANCES)
        made._validation_data_loader = loader(LmReader(), str(tmp_path / "dev.txt"))
        with pytest.raises(ValueError, match=r"dev\.txt.* must (hold at least one sentence|be UTF-8)"):
            made.train()
        assert made._total_batches_completed == 0

    @pytest.mark.parametrize("loader", ["data_loader", "_validation_data_loader"])
    def test_there_must_be_a_batch(self, loader):
        """Oracle: the message, before the first batch."""
        made = trainer(OurClassifier(), INSTANCES)
        setattr(made, loader, SimpleDataLoader([], batch_size=2, vocab=VOCAB))
        with pytest.raises(ConfigurationError, match=r"must have a batch, but this data has none: .*drop_last"):
            made.train()
        assert made._total_batches_completed == 0

    def test_there_must_be_an_epoch(self):
        """Oracle: the message."""
        with pytest.raises(ConfigurationError, match="num_epochs of the trainer must be at least 1, but is 0"):
            trainer(Classifier(), INSTANCES, n_epochs=0).train()


class TestAverageLossesOfRecoveredEpochs:
    def test_the_loss_is_that_of_the_batches_since_then(self, tmp_path):
        """Oracle: by hand, of the scores of each batch; the epoch that follows is as without the interruption."""
        model = Classifier()
        torch.nn.init.normal_(model.scores.weight)
        instances = [INSTANCES[number] for number in (0, 0, 0, 0, 1, 1)]

        def run(folder: Path, n_epochs: int) -> dict[str, Any]:
            made = trainer(model, INSTANCES, folder, n_epochs, training=instances)
            made.data_loader = SimpleDataLoader(instances, batch_size=1, vocab=VOCAB)
            made._checkpointer = FrozenOnceCheckpointer(
                str(folder), save_every_num_batches=4, keep_most_recent_by_count=9
            )
            found: dict[str, Any] = made.train()
            return found

        whole = run(tmp_path / "whole", 2)
        stopped = tmp_path / "stopped"
        stopped.mkdir()
        files = list((tmp_path / "whole").glob("*_e0_b4*"))
        assert files
        for file in files:
            shutil.copy(file, stopped)
        recovered = run(stopped, 1)
        of_each = [evaluate(model, loader([instance]))["loss"] for instance in INSTANCES]
        assert whole["training_loss"] == pytest.approx((4 * of_each[0] + 2 * of_each[1]) / 6, rel=1e-5)
        assert recovered["training_loss"] == pytest.approx(of_each[1], rel=1e-5)
        assert run(stopped, 2)["training_loss"] == pytest.approx(whole["training_loss"], rel=1e-5)


class TestEndRecoveredRunsThatHadEnded:
    def test_a_run_whose_patience_has_run_out_is_not_trained_on(self, tmp_path):
        """Oracle: the epochs on the disk, after another process has found the run without its archive."""
        straight = trainer(Classifier(), INSTANCES, tmp_path).train()
        files = sorted(path.name for path in tmp_path.glob("metrics_epoch_*"))
        recovered = trainer(Classifier(), INSTANCES, tmp_path).train()
        assert sorted(path.name for path in tmp_path.glob("metrics_epoch_*")) == files
        assert recovered["best_validation_accuracy"] == straight["best_validation_accuracy"]

    def test_one_that_was_interrupted_before_continues(self, tmp_path):
        """Oracle: the epochs on the disk."""
        trainer(Classifier(), INSTANCES, tmp_path, n_epochs=1).train()
        assert trainer(Classifier(), INSTANCES, tmp_path).train()["epoch"] == 1
