"""Tests of the config of a biLM of running text."""

import json

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.models import Model

import elmo_tasks.plugin  # noqa: F401
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE
from tests.paths import CHECKOUT, FIXTURES, TINY_BILM
from tests.training_configs.configs import evaluated

CONFIG = CHECKOUT / "benchmarks" / "running_text.jsonnet"


@pytest.fixture(autouse=True)
def data(monkeypatch) -> None:
    """The text that ships."""
    monkeypatch.setenv("ELMO_TASKS_DATA", str(FIXTURES))


def test_it_has_the_shape_of_the_biLM_of_sentences():
    """Oracle: `fixtures/bilm_words`, next to which the documentation puts it."""
    of_sentences = json.loads((FIXTURES / "bilm_words" / "options.json").read_text())
    assert evaluated(CONFIG)["model"]["options"] == of_sentences


@pytest.mark.slow
def test_it_is_trained_on_windows(tmp_path):
    """Oracle: it ends after its epoch, with a perplexity below that of chance."""
    tiny = {
        "model.options": json.loads((TINY_BILM / "options.json").read_text()),
        "model.n_samples": 16,
        # The text has few batches.
        "trainer.learning_rate_scheduler.warmup_steps": 3,
    }
    params = Params.from_file(CONFIG, json.dumps(tiny))
    model = train_model(params, str(tmp_path / "run"))
    assert isinstance(model, Model)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert 1 < metrics["best_validation_perplexity"] < 0.8 * model.vocab.get_vocab_size(LM_NAMESPACE)
