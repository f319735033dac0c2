"""Tests of a job in several processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.embed_job.conftest import content_of_hdf5
from tests.paths import TINY_BILM

pytestmark = pytest.mark.slow


def children() -> set[int]:
    """Processes of this one that were spawned by multiprocessing."""
    found = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def parts_of(job: Path) -> list[Path]:
    return list(job.glob("out.h5.parts/part-*"))


class TestEmbedInProcesses:
    def test_two_processes_make_the_same_file(self, embed, tmp_path):
        """Oracle: one process; no process is left."""
        embed("one.h5")
        report = embed("two.h5", workers=2)
        assert content_of_hdf5(tmp_path / "two.h5") == content_of_hdf5(tmp_path / "one.h5")
        assert report.n_tokens == 22
        assert not children()

    def test_a_process_that_is_killed_is_an_error_and_its_parts_are_done_later(self, embed, text, tmp_path):
        """Oracle: the message; a job that was not disturbed."""
        text.write_text("a b c\n" * 200)
        embed("whole.h5", {"part_lines": 2})

        def kill_one() -> None:
            while not parts_of(tmp_path):
                time.sleep(0.002)
            os.kill(min(children()), signal.SIGKILL)

        thread = threading.Thread(target=kill_one, daemon=True)
        thread.start()
        with pytest.raises(
            RuntimeError, match=r"a process of the job ended before its part was done.*What is done is kept.*--resume"
        ):
            embed("out.h5", {"part_lines": 2}, workers=1)
        thread.join()
        assert 0 < embed("out.h5", {"part_lines": 2}, resume=True).n_tokens < 600
        assert content_of_hdf5(tmp_path / "out.h5") == content_of_hdf5(tmp_path / "whole.h5")

    @pytest.mark.parametrize("n_signals", [1, 2])
    def test_a_job_that_is_interrupted_ends(self, embed, text, tmp_path, n_signals):
        """Oracle: the status, and that something is left to do. After a second Ctrl-C it waited for ever."""
        # Parts that are larger than a pipe.
        text.write_text(f"{'word ' * 200}\n" * 400)
        line = ["embed", str(text), str(tmp_path / "out.h5"), "--bilm", str(TINY_BILM), "--part-lines", "100"]
        command = [sys.executable, "-m", "elmo_tasks", *line, "--workers", "1", "--resume", "--no-progress"]
        job = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
        try:
            while not parts_of(tmp_path):
                assert job.poll() is None
                time.sleep(0.002)
            for _ in range(n_signals):
                os.killpg(job.pid, signal.SIGINT)
                time.sleep(0.1)
            _, printed = job.communicate(timeout=60)
        finally:
            job.kill()
        assert job.returncode == 128 + signal.SIGINT and "--resume" in printed
        assert 0 < embed("out.h5", {"part_lines": 100}, resume=True).n_tokens < 80_000
