"""Trainings that continue from the model of an archive."""

import json

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.token_embedders import Embedding
from tagger_runs import TRAIN, Run

from allennlp_today import load_archive

pytestmark = pytest.mark.usefixtures("logging_as_before")

NEW_WORD = "owls###N sing###V"


@pytest.fixture
def first(tmp_path) -> Run:
    """A finished run, with random weights."""
    run = Run(tmp_path / "first")
    run.start()
    return run


@pytest.fixture
def second(first, tmp_path) -> Run:
    """A run that continues from the archive of the first, with a new word."""
    run = Run(tmp_path / "second")
    run.write(run.train, [NEW_WORD, *TRAIN[::-1]])
    archive = str(first.folder / "model.tar.gz")
    run.config["model"] = {"type": "from_archive", "archive_file": archive}
    return run


class TestContinuing:
    def test_words_have_the_weights_of_the_archive(self, first, second):
        """The dev sets are the same, and the learning rate is 0."""
        expected = json.loads((first.folder / "metrics.json").read_text())["validation_loss"]
        assert second.start()["validation_loss"] == pytest.approx(expected, rel=1e-5)
        words = second.vocabulary()["tokens.txt"].split()
        assert words == [*first.vocabulary()["tokens.txt"].split(), "owls"]

    @pytest.mark.parametrize("path", ["", "model.tar.gz"], ids=["folder", "archive"])
    def test_the_archive_loads_alone_and_without_trust(self, first, second, path):
        second.start()
        (first.folder / "model.tar.gz").unlink()
        model = load_archive(second.folder / path).model
        assert type(model).__name__ == "SimpleTagger"
        assert model.vocab.get_token_index("owls") == model.vocab.get_vocab_size() - 1
        saved = torch.load(second.folder / "best.th", weights_only=True)
        torch.testing.assert_close(model.state_dict(), saved, rtol=0, atol=0)

    def test_overrides_change_the_model(self, second):
        second.start()
        changed = load_archive(
            second.folder,
            overrides={"model.calculate_span_f1": True, "model.label_encoding": "BIO"},
        )
        assert changed.model._f1_metric is not None

    def test_a_third_run_continues_from_the_second(self, second, tmp_path):
        expected = second.start()["validation_loss"]
        third = Run(tmp_path / "third")
        third.config["model"] = {"type": "from_archive", "archive_file": str(second.folder)}
        assert third.start()["validation_loss"] == pytest.approx(expected, rel=1e-5)
        assert third.vocabulary() == second.vocabulary()

    def test_it_can_be_recovered(self, second):
        expected = second.start()["validation_loss"]
        second.write(second.train, [*TRAIN, NEW_WORD])
        # With the config of the run, to which the model was added, and with that of the user.
        second.config = json.loads((second.folder / "config.json").read_text())
        metrics = second.recover()
        assert (metrics["epoch"], metrics["validation_loss"]) == (
            1,
            pytest.approx(expected, rel=1e-5),
        )
        del second.config["model"]["model"]
        assert second.resume()["best_validation_loss"] == pytest.approx(expected, rel=1e-5)

    def test_the_added_model_is_checked(self, second):
        second.start()
        file = second.folder / "config.json"
        config = json.loads(file.read_text())
        config["model"]["model"]["type"] = "bart"
        file.write_text(json.dumps(config))
        with pytest.raises(ConfigurationError, match="expected a listed Model, got 'bart'"):
            load_archive(second.folder)

    def test_new_labels_are_named(self, second):
        second.write(second.train, [*TRAIN, "owls###X sing###Y"])
        with pytest.raises(
            ConfigurationError,
            match=r"the labels of .*model\.tar\.gz \(3\), got 2 new, such as 'X'",
        ):
            second.start()
        assert not (second.folder / "vocabulary").exists()

    def test_embedded_labels_may_be_new(self, tmp_path):
        """Tags as an input have a namespace without unknown entries, but their embedding grows."""
        runs = [Run(tmp_path / name) for name in ("first", "second")]
        for run in runs:
            indexer = {"type": "single_id", "namespace": "input_tags"}
            run.config["dataset_reader"]["token_indexers"] = {"tokens": indexer}
            embedder = {"type": "embedding", "embedding_dim": 4, "vocab_namespace": "input_tags"}
            run.config["model"]["text_field_embedder"]["token_embedders"] = {"tokens": embedder}
        runs[0].start()
        runs[1].config["model"] = {"type": "from_archive", "archive_file": str(runs[0].folder)}
        runs[1].write(runs[1].train, [*TRAIN, NEW_WORD])
        runs[1].start()
        model = load_archive(runs[1].folder).model
        (embedding,) = (module for module in model.modules() if isinstance(module, Embedding))
        assert len(embedding.weight) == model.vocab.get_vocab_size("input_tags")
        assert "owls" in model.vocab.get_token_to_index_vocabulary("input_tags")
