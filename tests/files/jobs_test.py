"""
What a job logs where there is no terminal, the threads of its workers, and what it leaves when it
is killed.
"""

import multiprocessing
import os
import signal
import sys
from itertools import count
from pathlib import Path

import pytest
import torch

from elmo_tasks.files import jobs


def write(part: jobs.Part) -> int:
    part.file.write_text("x\n")
    return len(part.items)


def test_a_job_logs_a_line_every_minute(tmp_path: Path, monkeypatch, caplog):
    caplog.set_level("INFO", jobs.__name__)
    seconds = count(step=40)
    monkeypatch.setattr(jobs.time, "monotonic", lambda: next(seconds))
    output = tmp_path / "out"
    job = jobs.Job(output, {}, 4, 1, ".txt", force=False, unit="texts")
    job.run("abcd", write, jobs.FileOutput(join_file), workers=None, ray=None)
    assert output.read_text() == "x\n" * 4
    assert caplog.messages == [
        f"{output}: 4 texts; 0 of 4 parts exist",
        f"{output}: 2 of 4 texts, 80 s left",
        f"{output}: 4 of 4 texts, 0 s left",
        f"{output}: computed 4 texts in 200 s",
    ]


def write_threads(part: jobs.Part) -> int:
    part.file.write_text(f"{torch.get_num_threads()} ")
    return len(part.items)


@pytest.mark.weekly
def test_workers_share_the_threads_without_the_environment(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 6)
    environment = dict(os.environ)
    job = jobs.Job(tmp_path / "out", {}, 2, 1, ".txt", force=False)
    job.run("ab", write_threads, jobs.FileOutput(join_file), workers=2, ray=None)
    assert (tmp_path / "out").read_text() == "3 3 "
    assert dict(os.environ) == environment


def join_file(parts: list[Path], path: Path) -> None:
    path.write_text("".join(part.read_text() for part in parts))


def join_folder(parts: list[Path], path: Path) -> None:
    for part in parts:
        (path / f"copy-{part.name}").write_text(part.read_text())
    (path / "mark").touch()


OUTPUTS = {
    "out.txt": jobs.FileOutput(join_file),
    "folder/": jobs.FolderOutput(join_folder, "mark"),
    "parts/": jobs.PartsOutput(),
}


def command(folder: Path, name: str, letters: str, *, force: bool) -> None:
    jobs.ending_of(f"{folder}/{name}", folder / "text", (".txt", "/"), force=force)
    job = jobs.Job(folder / name, {"letters": letters}, 3, 1, ".txt", force)

    def write_letter(part: jobs.Part) -> int:
        with jobs.atomic_file(part.file) as temporary:
            temporary.write_text(part.items[0])
        return 1

    job.run(letters, write_letter, OUTPUTS[name], workers=None, ray=None)


def killed(n_operations: int, *arguments: object, force: bool) -> bool:
    """
    Runs the command in a process that is killed before an operation on files; whether it was
    killed.
    """

    def run() -> None:
        remaining = count(n_operations, -1)

        def hook(event: str, values: tuple) -> None:
            is_change = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
            if event == "open":
                is_change = values[1] not in ("r", "rb", None)
            if is_change and next(remaining) == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        command(*arguments, force=force)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def files_in(folder: Path) -> dict[str, str]:
    contents = {}
    for path in folder.rglob("*"):
        contents[str(path.relative_to(folder))] = path.read_text() if path.is_file() else "/"
    return contents


@pytest.mark.slow
@pytest.mark.parametrize("is_replaced", [False, pytest.param(True, marks=pytest.mark.weekly)])
@pytest.mark.parametrize("name", OUTPUTS)
def test_a_job_that_is_killed_anywhere_ends_with_the_same_command(tmp_path, name, is_replaced):
    def begin(number: int) -> Path:
        folder = tmp_path / str(number)
        folder.mkdir()
        if is_replaced:
            command(folder, name, "xyz", force=False)
        return folder

    command(begin(1000), name, "abc", force=is_replaced)
    expected = files_in(tmp_path / "1000")
    assert set("abc") <= set("".join(expected.values()))
    assert len(expected) == {"out.txt": 1, "folder/": 5, "parts/": 4}[name]
    for number in count():
        folder = begin(number)
        if not killed(number, folder, name, "abc", force=is_replaced):
            break
        command(folder, name, "abc", force=is_replaced)
        assert files_in(folder) == expected, number
    assert number > 10
    with pytest.raises(FileExistsError, match="--force"):
        command(folder, name, "abc", force=False)


def test_a_different_job_does_not_take_what_a_killed_one_has_joined(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(jobs.shutil, "rmtree", interrupt)
        command(tmp_path, "out.txt", "abc", force=False)
    assert (tmp_path / "out.txt").read_text() == "abc"
    with pytest.raises(ValueError, match="different job"):
        command(tmp_path, "out.txt", "xyz", force=False)
    command(tmp_path, "out.txt", "xyz", force=True)
    assert files_in(tmp_path) == {"out.txt": "xyz"}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_output_of_a_job_in_between_is_kept(tmp_path, name):
    """It is written after the first job has looked for it, and before that one has locked it."""
    job = jobs.Job(tmp_path / name, {"letters": "xyz"}, 3, 1, ".txt", force=False)
    command(tmp_path, name, "abc", force=False)
    before = files_in(tmp_path)
    with pytest.raises(FileExistsError, match="use --force"):
        job.run("xyz", write, OUTPUTS[name], workers=None, ray=None)
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_part_of_no_job_is_named(tmp_path, name):
    def write_one(part: jobs.Part) -> int:
        if part.first:
            raise KeyboardInterrupt
        part.file.write_text(part.items[0])
        return 1

    folder = tmp_path / f"{name.strip('/')}.parts"
    job = jobs.Job(tmp_path / name, {"letters": "abc"}, 3, 1, ".txt", force=False)
    with pytest.raises(KeyboardInterrupt):
        job.run("abc", write_one, OUTPUTS[name], workers=None, ray=None)
    (folder / "part-00000003.txt").write_text("d")
    with pytest.raises(ValueError, match=r"expected 3 parts: remove .*part-00000003\.txt"):
        command(tmp_path, name, "abc", force=False)
    (folder / "part-00000003.txt").unlink()
    command(tmp_path, name, "abc", force=False)
    assert set("abc") <= set("".join(files_in(tmp_path).values()))


def test_a_job_that_ended_before_its_first_part_may_change(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(jobs, "atomic_file", interrupt)
        command(tmp_path, "out.txt", "abc", force=False)
    command(tmp_path, "out.txt", "xyz", force=False)
    assert files_in(tmp_path) == {"out.txt": "xyz"}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt
