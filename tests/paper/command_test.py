import json
import shutil
from pathlib import Path

import pytest

from tests.paths import CHECKOUT, FIXTURES

pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A copy of the published runs, in a folder without data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ELMO_TASKS_BILM")
    folder = Path("results", "open", "pos")
    return Path(shutil.copytree(CHECKOUT / folder, tmp_path / folder))


class TestPublishedRuns:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ([], "| biLM, first layer               | 93.7 ± 0.0 (3) | 93.6 ± 0.1 (3) |"),
            ([], "-0.6 (-10.0%), p < 0.001"),
            (["--format", "latex"], "93.7 ± 0.0 (3) & 93.6 ± 0.1 (3) & 97.3"),
            (["--format", "csv"], "93.7 ± 0.0 (3),93.6"),
        ],
    )
    def test_a_checkout_prints_its_tables_without_data(
        self, command, published, capsys, options, expected
    ):
        command("elmo-tables", "--plan", "open", "--table", "6", *options)
        assert expected in capsys.readouterr().out

    def test_finished_runs_are_shown_without_training_the_others(self, command, published, capsys):
        shutil.rmtree(published / "layer-2")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("subprocess.Popen", None)
            command("elmo-tables", "--plan", "open", "--finished", "--table", "6")
        rows = capsys.readouterr().out
        assert "| biLM, first layer               | 93.7 ± 0.0 (3)" in rows
        assert "| biLM, second layer              | –" in rows

    def test_what_is_not_finished_is_named(self, command, published, capsys):
        command("elmo-tables", "--plan", "open", "--finished", "--table", "1", "--tasks", "sst")
        assert "Table 1: baseline and ELMo: nothing is finished in" in capsys.readouterr().err

    def test_table_4_is_printed_from_its_file(self, command, published, capsys):
        folder = published.parent
        shutil.copy(CHECKOUT / "results" / "open" / "neighbors.json", folder)
        command("elmo-tables", "--plan", "open", "--table", "4")
        assert "| GloVe | play" in capsys.readouterr().out

    def test_a_damaged_file_is_named_and_the_others_are_shown(self, command, published, capsys):
        (published / "layer-1" / "1.json").write_text("{")
        shutil.rmtree(published / "layer-2")
        with pytest.raises(SystemExit) as ended:
            command("elmo-tables", "--plan", "open", "--table", "6", "--dry-run")
        assert "layer-1/1.json" in str(ended.value.code)
        states = {}
        for line in capsys.readouterr().out.splitlines():
            state, name = line.rsplit(maxsplit=1)
            states[name] = state
        assert states["pos/layer-0/1"] == "finished"
        assert states["pos/layer-1/1"] == "refused"
        assert states["pos/layer-2/3"] == "to run"
        assert states["data/pos/train.conllu"] == "not found"

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (["--overrides", 'snil={"trainer.num_epochs": 1}'], "snil"),
            (["--table", "7"], "'7'"),
            (["--tasks", "sts"], "'sts'"),
        ],
    )
    def test_a_mistyped_option_is_an_error(self, command, capsys, arguments, named):
        with pytest.raises(SystemExit) as ended:
            command("elmo-tables", *arguments)
        assert ended.value.code == 2
        assert named in capsys.readouterr().err


@pytest.mark.weekly
def test_a_run_is_trained_once_and_shown(command, tmp_path, capsys):
    overrides = {"dataset_reader.max_instances": 8, "trainer.num_epochs": 1}
    arguments = ["elmo-tables", "--figure", "2", "--tasks", "ner", "--seeds", "1"]
    arguments += ["--overrides", json.dumps(overrides)]
    for _ in range(2):
        command(*arguments, "--data", FIXTURES, "--results", tmp_path)
    captured = capsys.readouterr()
    assert captured.err.count("ner/input/1: finished") == 1
    assert "figure2.svg" in captured.out
    folder = tmp_path / "ner" / "input"
    scores = json.loads((folder / "1.json").read_text())
    metrics = json.loads((folder / "1" / "run" / "metrics.json").read_text())
    assert scores["dev"] == 100 * metrics["best_validation_f1-measure-overall"]
    assert scores["test"] == 100 * metrics["test_f1-measure-overall"]
    assert len(scores["epochs"]) == 1
    (mix,) = scores["mix"]
    assert sum(mix["weights"]) == pytest.approx(1)
    assert mix["place"] == "input"
