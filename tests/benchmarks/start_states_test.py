"""Tests of the comparison of biLMs whose sentences start from other states."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

import elmo_tasks.plugin  # noqa: F401
from tests.demo.archives import write_archive
from tests.paths import CHECKOUT, FIXTURES, TINY_BILM, WORDS_BILM
from tests.training_configs.configs import evaluated

FOLDER = CHECKOUT / "benchmarks" / "start_states"
NAMES = ["sentences", "running_text"]
DEV = FIXTURES / "lm" / "dev.txt"


@pytest.fixture(autouse=True)
def data(monkeypatch) -> None:
    """The text that ships."""
    monkeypatch.setenv("ELMO_TASKS_DATA", str(FIXTURES))


@pytest.fixture
def script(monkeypatch) -> ModuleType:
    """The script."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("perplexity_by_start")


@pytest.mark.parametrize("name", NAMES)
def test_shape(name):
    """Oracle: `fixtures/bilm_words`, next to which the documentation puts both."""
    of_sentences = json.loads((WORDS_BILM / "options.json").read_text())
    assert evaluated(FOLDER / f"{name}.jsonnet")["model"]["options"] == of_sentences


def test_they_differ_in_the_state_alone():
    """Oracle: the keys that say how text is read, and as many words a step."""
    sentences, running_text = (evaluated(FOLDER / f"{name}.jsonnet") for name in NAMES)
    loader, windows = sentences.pop("data_loader"), running_text.pop("data_loader")
    assert loader["max_tokens_per_batch"] == windows["n_streams"] * windows["window"]
    assert running_text["model"].pop("running_state")
    for config in (sentences, running_text):
        config.pop("validation_data_loader")
    assert sentences == running_text


def tiny_run(name: str, folder: Path) -> dict[str, float]:
    """Trains the tiny biLM as a config says; returns the metrics."""
    tiny = {
        "model.options": json.loads((TINY_BILM / "options.json").read_text()),
        "model.n_samples": 16,
        # The text has few batches.
        "trainer.learning_rate_scheduler.warmup_steps": 3,
    }
    train_model(Params.from_file(FOLDER / f"{name}.jsonnet", json.dumps(tiny)), str(folder / name))
    return json.loads((folder / name / "metrics.json").read_text())


@pytest.mark.slow
def test_perplexities(script, tmp_path, monkeypatch):
    """Oracle: the validations of the trainings, each of which has read the text in one of the ways."""
    metrics = {name: tiny_run(name, tmp_path) for name in NAMES}
    output = tmp_path / "results" / "perplexity.json"
    given = [*(tmp_path / name for name in NAMES), "--text", DEV, "--output", output]
    monkeypatch.setattr("sys.argv", ["perplexity_by_start.py", *map(str, given)])
    script.main()
    content = json.loads(output.read_text())
    assert content["sentences"] == len(DEV.read_text().splitlines())
    found = {(row["biLM"], row["start"]): row for row in content["rows"]}
    ways = [(name, f"{state} state") for name in NAMES for state in ("zero", "settled")]
    assert list(found) == [*ways, ("running_text", "running text")]
    for key in (("sentences", "zero state"), ("running_text", "running text")):
        for name in ("forward_perplexity", "backward_perplexity", "perplexity", "unknown_share"):
            assert found[key][name] == pytest.approx(metrics[key[0]][f"best_validation_{name}"], rel=1e-4)
    # All five ways are different ones.
    assert len({row["perplexity"] for row in content["rows"]}) == 5


def test_another_model_is_refused(script, monkeypatch, tmp_path):
    """Oracle: the message."""
    archive = write_archive(tmp_path / "ner", "ner")
    given = [archive, "--text", DEV, "--output", tmp_path / "perplexity.json"]
    monkeypatch.setattr("sys.argv", ["perplexity_by_start.py", *map(str, given)])
    with pytest.raises(SystemExit, match="must be an 'elmo_bilm', but is a NerTagger"):
        script.main()
    assert not (tmp_path / "perplexity.json").exists()


def test_a_missing_run(script, monkeypatch, tmp_path):
    """Oracle: the message."""
    given = [tmp_path / "none", "--text", DEV, "--output", tmp_path / "perplexity.json"]
    monkeypatch.setattr("sys.argv", ["perplexity_by_start.py", *map(str, given)])
    with pytest.raises(SystemExit, match=r"^error: .*none"):
        script.main()
