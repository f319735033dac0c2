"""What a job logs where there is no terminal, and the threads of its workers."""

import os
from itertools import count
from pathlib import Path

import torch

from elmo_tasks import jobs


def write(part: jobs.Part) -> int:
    part.file.write_text("x\n")
    return len(part.items)


def test_a_job_logs_a_line_every_minute(tmp_path: Path, monkeypatch, caplog):
    caplog.set_level("INFO", jobs.__name__)
    seconds = count(step=40)
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(seconds))
    job = jobs.Job(tmp_path / "out", {}, 4, 1, ".txt", force=False, unit="texts")
    job.run("abcd", write, lambda files, path: path.write_text(str(len(files))), workers=None, ray=None)
    assert (tmp_path / "out").read_text() == "4"
    messages = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert messages == [
        "4 texts; 0 of 4 parts exist",
        "2 of 4 texts, 80 s left",
        "4 of 4 texts, 0 s left",
        "computed 4 texts in 200 s",
    ]


def write_threads(part: jobs.Part) -> int:
    part.file.write_text(f"{torch.get_num_threads()} ")
    return len(part.items)


def test_workers_share_the_threads_without_the_environment(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    environment = dict(os.environ)
    job = jobs.Job(tmp_path / "out", {}, 2, 1, ".txt", force=False)
    job.run(
        "ab",
        write_threads,
        lambda files, path: path.write_text("".join(f.read_text() for f in files)),
        workers=2,
        ray=None,
    )
    assert (tmp_path / "out").read_text() == "3 3 "
    assert dict(os.environ) == environment
