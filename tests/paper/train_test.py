"""Tests of training runs with a stub of `allennlp train`; `command_test.py` has a real one."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from importlib.metadata import version

import pytest
import torch

from elmo_tasks.files.atomic_files import locked
from elmo_tasks.files.json_files import write_json
from elmo_tasks.paper.plan import Run
from elmo_tasks.paper.train import finished, sort_out, train_all
from elmo_tasks.version import __version__
from tests.paths import CHECKOUT

IS_LOCKED = "is trained by another process"


def problem_of(run: Run) -> str | None:
    """Trains a run, and returns why it is not finished."""
    ((_, problem),) = train_all([run])
    return problem


class TestTrainAll:
    def test_a_finished_run_has_its_scores_in_percent(self, stub, make_run):
        run = make_run(data="1234")
        assert list(train_all([run])) == [(run, None)]
        scores = json.loads(run.file.read_text())
        assert scores["dev"] == 50
        assert scores["test"] == 25
        assert scores["epochs"] == [40, 50]
        assert scores["seconds"] == 120
        assert scores["digest"] == "digest"
        assert scores["inputs"] == {"data": "1234"}
        assert scores["training_size"] == 100
        (mix,) = scores["mix"]
        weights = torch.tensor([0.0, 0.0, 1.0]).softmax(0)
        assert mix["weights"] == pytest.approx(weights.tolist())
        assert mix["gamma"] == 2
        assert json.loads((run.folder / "config.json").read_text()) == {"random_seed": 1}

    def test_a_finished_run_names_its_code(self, stub, make_run):
        run = make_run()
        list(train_all([run]))
        scores = json.loads(run.file.read_text())
        versions = {
            "elmo_tasks": __version__,
            "allennlp": version("allennlp"),
            "torch": version("torch"),
        }
        assert scores["versions"] == versions
        assert re.fullmatch(r"[0-9a-f]{12}(\+changes)?", scores["commit"])

    def test_an_interrupted_run_is_resumed(self, stub, make_run, tmp_path):
        run = make_run()
        stub('touch "$6"/model_state_e0_b0.th; exit 1')
        assert problem_of(run) is not None
        stub()
        assert problem_of(run) is None
        new_call, second_call = (tmp_path / "calls").read_text().splitlines()
        assert new_call.endswith("--force")
        assert second_call.endswith("--recover")

    def test_a_resumed_run_has_the_seconds_of_all_epochs(self, stub, make_run):
        run = make_run()
        stub("duration=0:00:30.000000")
        list(train_all([run]))
        assert json.loads(run.file.read_text())["seconds"] == 90

    def test_a_failed_run_does_not_stop_the_others(self, stub, make_run):
        runs = [make_run(1), make_run(2)]
        stub('case "$4" in */1/*) echo nan loss encountered; exit 1;; esac')
        problems = {run.name: problem for run, problem in train_all(runs, jobs=2)}
        assert "nan loss encountered" in problems["snli/both/1"]
        assert problems["snli/both/2"] is None
        assert finished(runs[0]) is None
        assert finished(runs[1])

    def test_a_run_that_is_locked_is_left_to_its_owner(self, stub, make_run, tmp_path):
        run = make_run()
        run.folder.mkdir(parents=True)
        with locked(run.folder):
            assert problem_of(run) == IS_LOCKED
        assert not (tmp_path / "calls").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGTERM, marks=pytest.mark.weekly),
        pytest.param(signal.SIGINT, marks=pytest.mark.weekly),
    ],
)
def test_a_killed_command_leaves_no_second_training(make_run, stub, tmp_path, number):
    """SIGTERM and Ctrl-C also stop the training; after SIGKILL it continues, and holds its lock."""
    run = make_run()
    # `allennlp train` locks its folder, too.
    program = textwrap.dedent(f"""
        import time
        from pathlib import Path
        from elmo_tasks.files.atomic_files import locked

        with locked(Path({str(run.folder / "run")!r})):
            Path({str(tmp_path / "is_locked")!r}).touch()
            time.sleep(60)
    """)
    (tmp_path / "training.py").write_text(program)
    training = f"PYTHONPATH={CHECKOUT} exec {sys.prefix}/bin/python {tmp_path}/training.py"
    stub(f"echo $$ > {tmp_path}/pid; [ -e {tmp_path}/resumed ] || {training}")
    script = textwrap.dedent(f"""
        import signal, sys
        from pathlib import Path
        from elmo_tasks.paper.plan import Run
        from elmo_tasks.paper.train import train_all
        python, sys.executable = sys.executable, {str(tmp_path / "python")!r}
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        folder = Path({str(run.folder)!r})
        run = Run("snli", "both", 1, None, folder, {{}}, {{}}, 100, "digest", {{}})
        list(train_all([run]))
    """)
    python = os.path.join(sys.prefix, "bin", "python")
    command = subprocess.Popen([python, "-c", script], cwd=CHECKOUT)
    while not (tmp_path / "is_locked").exists():
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    command.send_signal(number)
    command.wait(timeout=20)
    if number == signal.SIGKILL:
        assert problem_of(run) == IS_LOCKED
        os.kill(child, signal.SIGKILL)
    (tmp_path / "resumed").touch()
    problem = problem_of(run)
    while problem == IS_LOCKED:
        time.sleep(0.1)
        problem = problem_of(run)
    assert problem is None
    assert finished(run)


class TestFinished:
    @pytest.mark.parametrize(
        ("change", "named"),
        [({"digest": "0"}, "config"), ({"data": "0"}, "data"), ({"hidden": 300}, "arguments")],
    )
    def test_scores_with_a_different_config_data_or_settings_are_refused(
        self, stub, make_run, change, named
    ):
        list(train_all([make_run(data="1234")]))
        with pytest.raises(ValueError, match=named) as refused:
            finished(make_run(**{"data": "1234", **change}))
        assert str(make_run().file) in str(refused.value)

    def test_published_scores_are_valid_in_a_different_spelling_of_the_config(self, stub, make_run):
        run = make_run()
        list(train_all([run]))
        shutil.rmtree(run.folder)
        assert finished(make_run(digest="0")) == finished(run)
        with pytest.raises(ValueError, match="arguments"):
            finished(make_run(hidden=300))

    def test_a_run_that_was_cut_by_the_number_of_epochs_is_refused(self, stub, make_run):
        # The second of its two epochs is the best.
        list(train_all([make_run()]))
        with pytest.raises(ValueError, match="num_epochs") as refused:
            finished(make_run(patience=1))
        assert "got 0 after epoch 2" in str(refused.value)
        assert finished(make_run()) is not None

    @pytest.mark.parametrize(("patience", "is_accepted"), [(2, True), (3, False)])
    def test_a_run_that_its_patience_ended_is_accepted(self, make_run, patience, is_accepted):
        run = make_run(patience=patience)
        # The first of two equal epochs is the best one.
        scores = {"epochs": [40.0, 50.0, 50.0, 49.0], "settings": run.settings, "inputs": {}}
        run.file.parent.mkdir(parents=True)
        write_json(run.file, scores)
        assert bool(sort_out([run]).scores) == is_accepted

    def test_data_that_does_not_exist_here_is_not_compared(self, stub, make_run):
        list(train_all([make_run(data="1234")]))
        assert finished(make_run())["dev"] == 50
