"""Tests of one training in a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from elmo_tasks.replication import Outcome, Training, run_here, status
from elmo_tasks.replication.train.training import begin, train


def wait_for(condition) -> None:
    """Up to ten minutes, on a busy machine."""
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class TestTraining:
    def test_it_trains_the_config_of_the_run_and_notes_the_end(self, make_run, allennlp):
        """Oracle: the call, the config, and what the folder says of itself afterwards."""
        run = make_run(seed=3)
        assert train(run, allennlp.command).error is None
        config = run.folder / "config.json"
        assert allennlp.calls() == [["train", str(config), "-s", str(run.serialization_dir), "--file-friendly-logging"]]
        assert json.loads(config.read_text()) == {"random_seed": 3}
        assert status(run) == "finished"

    def test_a_training_resumes_from_its_checkpoint(self, make_run, allennlp):
        """Oracle: the call, and that the checkpoint is still there, but not the archive of the interruption."""
        run = make_run()
        allennlp.behaves('touch "$4/model_state_e1_b0.th" "$4/model.tar.gz"; kill -9 $$')
        outcome = train(run, allennlp.command)
        assert "signal 9" in outcome.error
        assert status(run) == "interrupted"
        allennlp.behaves('test ! -e "$4/model.tar.gz" || exit 1')
        assert train(run, allennlp.command).error is None
        assert allennlp.calls()[1][-1] == "--recover"
        assert (run.serialization_dir / "model_state_e1_b0.th").exists()

    @pytest.mark.parametrize(
        ("script", "message"),
        [
            ('rm "$(dirname "$4")/log.txt"; exit 3', "has ended with status 3, but that cannot be noted: .*log.txt"),
            (
                'echo "{" > "$(dirname "$4")/record.json"',
                "has ended with status 0, but .* noted: .*record.json must be",
            ),
        ],
    )
    def test_an_end_that_cannot_be_noted_is_an_error_of_this_run(self, make_run, allennlp, script, message):
        """Oracle: the message, and that the next one is trained."""
        allennlp.behaves(f'case "$2" in *both/1/*) {script};; esac')
        first, second = run_here([make_run(seed=1), make_run(seed=2)], command=allennlp.command)
        assert re.match(message, first.error) and first.failure is None
        assert second.error is None

    def test_without_a_checkpoint_it_starts_over(self, make_run, allennlp):
        """Oracle: the call, and that what was left is gone."""
        run = make_run()
        allennlp.behaves('touch "$4/left"; exit 1')
        train(run, allennlp.command)
        allennlp.behaves("")
        assert train(run, allennlp.command).error is None
        assert "--recover" not in allennlp.calls()[1]
        assert not (run.serialization_dir / "left").exists()

    @pytest.mark.parametrize(
        ("script", "message"),
        [
            ("echo first; echo the reason >&2; exit 3", "status 3: the reason"),
            ("exit 1", "status 1: it wrote nothing"),
            ("exit 0", "ended without metrics.json"),
        ],
    )
    def test_a_failure_is_reported_with_the_last_line_of_the_log(self, make_run, allennlp, script, message):
        """Oracle: the message, and where the log is."""
        allennlp.behaves(script)
        error = train(make_run(), allennlp.command).error
        assert message in error
        assert str(make_run().folder / "log.txt") in error
        assert status(make_run()) == "to run"

    @pytest.mark.parametrize(
        ("script", "is_failure"),
        [
            ("kill -TERM $$", False),
            ("echo ended by SIGTERM >&2; exit 143", False),
            ("echo ValueError >&2; exit 1", True),
        ],
    )
    def test_what_is_ended_from_outside_has_not_failed(self, make_run, allennlp, script, is_failure):
        """Oracle: by hand; `allennlp` ends with status 143 after a SIGTERM."""
        allennlp.behaves(script)
        outcome = train(make_run(), allennlp.command)
        assert outcome.error is not None
        assert (outcome.failure is not None) == is_failure

    def test_another_run_in_the_folder_is_left_alone(self, make_run, allennlp):
        """Oracle: the message; no call, and the record is the first one's."""
        train(make_run(), allennlp.command)
        assert "num_epochs" in train(make_run(value=2), allennlp.command).error
        assert len(allennlp.calls()) == 1
        assert status(make_run()) == "finished"

    def test_a_finished_run_is_left_alone(self, make_run, allennlp):
        """Oracle: the outcome; one call."""
        assert train(make_run(), allennlp.command) == train(make_run(), allennlp.command) == Outcome(make_run())
        assert len(allennlp.calls()) == 1

    def test_a_run_is_trained_by_one_process(self, make_run, allennlp):
        """Oracle: the outcome of the second, while the first waits for a file."""
        run = make_run()
        allennlp.behaves(f'while ! test -e "{run.folder}/go"; do sleep 0.01; done')
        training = Training(run, allennlp.command)
        assert status(run) == "in progress"
        assert "another process" in begin(run, allennlp.command).error
        assert not training.is_over()
        (run.folder / "go").touch()
        assert training.outcome().error is None

    def test_stopping_ends_the_process(self, make_run, allennlp):
        """Oracle: the lock is free."""
        allennlp.behaves("exec sleep 60")
        training = Training(make_run(), allennlp.command)
        training.stop()
        assert training.is_over()
        assert status(make_run()) == "to run"

    def test_stopping_ends_the_processes_of_the_training_too(self, make_run, allennlp):
        """Oracle: the lock, which a child of the training holds that ignores the first signal, is free."""
        run = make_run()
        allennlp.behaves(f'(trap "" TERM; touch "{run.folder}/started"; while true; do sleep 0.1; done) & sleep 60')
        training = Training(run, allennlp.command)
        wait_for((run.folder / "started").exists)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("elmo_tasks.replication.train.training._SECONDS_TO_END", 0.5)
            training.stop()
        wait_for(lambda: status(run) == "to run")

    def test_a_training_that_is_over_can_be_stopped(self, make_run, allennlp):
        """Oracle: its scores are left as they are."""
        run = make_run()
        training = Training(run, allennlp.command)
        wait_for(training.is_over)
        training.stop()
        assert training.outcome().error is None and status(run) == "finished"

    def test_ctrl_c_in_a_terminal_does_not_reach_it(self, make_run, allennlp):
        """Oracle: the process group: a terminal signals its own."""
        run = make_run()
        allennlp.behaves(f'echo $$ > "{run.folder}/group"; exec sleep 60')
        training = Training(run, allennlp.command)
        wait_for(lambda: (run.folder / "group").exists() and (run.folder / "group").read_text().strip())
        pid = int((run.folder / "group").read_text())
        assert os.getpgid(pid) == pid != os.getpgrp()
        training.stop()

    def test_when_we_are_killed_the_training_continues_and_keeps_its_lock(self, make_run, allennlp, tmp_path):
        """Oracle: `kill -9` of a process that trains; its child ends by itself, and no second training starts."""
        run = make_run()
        allennlp.behaves(f'while ! test -e "{run.folder}/go"; do sleep 0.01; done')
        # As `Training`, without its imports: hold a lock, and pass it to a child.
        code = (
            "import fcntl, subprocess, sys, time\n"
            "lock = open(sys.argv[1], 'ab')\n"
            "fcntl.flock(lock, fcntl.LOCK_EX)\n"
            "subprocess.Popen(sys.argv[2:], pass_fds=[lock.fileno()])\n"
            "lock.close()\n"
            "time.sleep(60)"
        )
        run.folder.mkdir(parents=True)
        call = [*allennlp.command, "train", "config", "-s", str(run.serialization_dir)]
        parent = subprocess.Popen([sys.executable, "-S", "-c", code, str(run.folder / "lock"), *call])
        wait_for(lambda: allennlp.calls())
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        from elmo_tasks.replication.train.record import write_record

        write_record(run)
        assert status(run) == "in progress"
        assert "another process" in begin(run, allennlp.command).error
        (run.folder / "go").touch()
        wait_for(lambda: status(run) != "in progress")
        assert (run.serialization_dir / "metrics.json").exists()
