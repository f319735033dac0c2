"""Trainings that are recovered with other data, settings or files than they had."""

from typing import Any

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.models.simple_tagger import SimpleTagger
from tagger_runs import DEV, TRAIN, Run

pytestmark = pytest.mark.usefixtures("logging_as_before")


@Model.register("tagger_with_a_special_token")
class TaggerWithASpecialToken(SimpleTagger):
    """Adds an entry to its vocabulary, as models that copy words do."""

    def __init__(self, vocab: Vocabulary, **kwargs: Any) -> None:
        vocab.add_token_to_namespace("@copy@", "tokens")
        super().__init__(vocab, **kwargs)


@pytest.fixture
def run(tmp_path) -> Run:
    return Run(tmp_path)


class TestVocabulary:
    @pytest.mark.parametrize("model", ["simple_tagger", "tagger_with_a_special_token"])
    def test_words_keep_their_weights_if_lines_are_in_a_different_order(self, run, model):
        run.config["model"]["type"] = model
        loss = run.start()["validation_loss"]
        vocabulary = run.vocabulary()
        run.write(run.train, TRAIN[::-1])
        run.write(run.dev, DEV[::-1])
        metrics = run.recover()
        assert (metrics["epoch"], metrics["validation_loss"]) == (1, pytest.approx(loss, rel=1e-5))
        assert run.vocabulary() == vocabulary

    @pytest.mark.parametrize(
        ("file", "lines", "found"),
        [
            ("train", [*TRAIN, "owls###N sing###V"], "tokens: 1 new, such as 'owls'"),
            ("dev", [*DEV, "owls###N sing###V"], "tokens: 1 new, such as 'owls'"),
            ("dev", [*DEV, "Ann###X"], "labels: 1 new, such as 'X'"),
            ("dev", DEV[:1], "tokens: 1 missing, such as 'you'"),
            ("train", ["Ann###N sings###V", *TRAIN[2:]], "tokens: 1 missing, such as 'ben'"),
        ],
    )
    def test_different_words_are_an_error_that_changes_nothing(self, run, file, lines, found):
        indexer = {"type": "single_id", "lowercase_tokens": True}
        run.config["dataset_reader"]["token_indexers"] = {"tokens": indexer}
        run.start()
        files = [*run.folder.glob("vocabulary/*.txt"), *run.folder.glob("*.th")]
        before = {file: file.read_bytes() for file in files}
        run.write(getattr(run, file), lines)
        with pytest.raises(ConfigurationError, match=found) as caught:
            run.recover()
        assert str(run.folder) in str(caught.value)
        assert {file: file.read_bytes() for file in files} == before

    def test_without_a_checkpoint_the_words_are_counted_again(self, run):
        run.start()
        for file in run.folder.glob("*_state_*.th"):
            file.unlink()
        run.write(run.train, [*TRAIN, "owls###N sing###V"])
        run.recover()
        assert "owls" in run.vocabulary()["tokens.txt"].split()


class TestCheckpoint:
    @pytest.mark.parametrize("name", ["model_state", "training_state"])
    @pytest.mark.parametrize("damage", ["half", "bit", "missing"])
    def test_a_damaged_file_is_named(self, run, name, damage):
        run.start()
        file = run.folder / f"{name}_e1_b0.th"
        content = bytearray(file.read_bytes())
        if damage == "half":
            file.write_bytes(content[: len(content) // 2])
        elif damage == "bit":
            content[content.index(b"PK", 4) - 20] ^= 1
            file.write_bytes(content)
        else:
            file.unlink()
        if name == "model_state" and damage == "missing":
            # AllenNLP finds checkpoints by this file.
            assert run.recover()["epoch"] == 1
            return
        expected = rf"{name}_e1_b0\.th.*delete model_state_e1_b0"
        with pytest.raises(ConfigurationError, match=expected):
            run.recover()
        assert file.exists() == (damage != "missing")


class TestSettings:
    @pytest.mark.parametrize("scheduler", [None, {"type": "linear_with_warmup", "warmup_steps": 1}])
    def test_a_changed_learning_rate_is_a_warning(self, run, scheduler):
        run.config["trainer"] |= {"optimizer": {"type": "sgd", "lr": 0.25}}
        run.config["trainer"] |= {"learning_rate_scheduler": scheduler} if scheduler else {}
        run.start()
        run.recover()
        log = run.folder / "out.log"
        assert "learning rate" not in log.read_text()
        run.recover(optimizer={"type": "sgd", "lr": 0.125})
        (line,) = [line for line in log.read_text().splitlines() if "ignored" in line]
        assert "0.125 of the config" in line and line.endswith(", 0.25")

    def test_a_schedule_has_the_length_of_the_new_number_of_epochs(self, run):
        """Of two batches each. A schedule of four steps would leave a rate of 0 for the others."""
        run.config["trainer"] = {
            "num_epochs": 2,
            "optimizer": {"type": "sgd", "lr": 0.6},
            "learning_rate_scheduler": {"type": "linear_with_warmup", "warmup_steps": 0},
        }
        run.start()
        state = torch.load(run.folder / "training_state_e2_b0.th", weights_only=True)
        assert state["optimizer"]["param_groups"][0]["lr"] == 0.0
        before = torch.load(run.folder / "model_state_e2_b0.th", weights_only=True)
        run.recover()
        state = torch.load(run.folder / "training_state_e3_b0.th", weights_only=True)
        assert state["learning_rate_scheduler"]["total_steps"] == 6
        after = torch.load(run.folder / "model_state_e3_b0.th", weights_only=True)
        name = "tag_projection_layer._module.bias"
        assert not torch.equal(after[name], before[name])


def test_a_training_that_keeps_no_checkpoints_writes_its_best_weights(run):
    run.config["trainer"]["checkpointer"] = {"keep_most_recent_by_count": 0}
    run.start()
    assert [file.name for file in run.folder.glob("*.th")] == ["best.th"]
