"""Tests of what is noted of the code and the machine."""

import re
import subprocess
from importlib import metadata

import pytest

from elmo_tasks.replication.train import surroundings
from elmo_tasks.replication.train.surroundings import commit, machine, n_cores, versions


@pytest.fixture
def checkout(tmp_path):
    """A repository with a commit, that has code and a page."""

    def git(*arguments: str) -> str:
        call = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "-q")
    for name in ("elmo_tasks/a.py", "docs/a.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    return tmp_path, git("rev-parse", "HEAD")


class TestCommit:
    def test_a_change_of_the_code_is_marked_and_one_of_the_pages_is_not(self, checkout):
        """Oracle: git's own name of the commit; a new file is no change of what was committed."""
        folder, head = checkout
        (folder / "docs" / "a.md").write_text("2")
        (folder / "elmo_tasks" / "new.py").write_text("")
        assert commit(folder) == head[:12]
        (folder / "elmo_tasks" / "a.py").write_text("2")
        assert commit(folder) == f"{head[:12]}-dirty"

    def test_without_a_repository_of_its_own_there_is_none(self, checkout, tmp_path, monkeypatch):
        """Oracle: a folder of packages within another repository, a damaged one, and no git."""
        folder, _ = checkout
        assert commit(folder / "docs") is None
        (tmp_path / "docs" / ".git").mkdir()
        (tmp_path / "docs" / ".git" / "HEAD").write_text("damaged")
        (folder / ".git" / "HEAD").write_text("damaged")
        assert commit(folder) is None
        monkeypatch.setenv("PATH", "")
        assert commit(folder) is None


class TestMachine:
    def test_the_processor_is_named_and_its_cores_are_counted(self, tmp_path, monkeypatch):
        """Oracle: by hand, from the lines of Linux; and where there are none."""
        monkeypatch.setattr("torch.cuda.is_available", lambda: False)
        monkeypatch.setattr(surroundings, "n_cores", lambda: 1)
        info = tmp_path / "cpuinfo"
        info.write_text("processor\t: 0\nmodel name\t: Fast CPU @ 3: GHz\nmodel name\t: other\n")
        monkeypatch.setattr(surroundings, "Path", lambda name: info)
        assert machine.__wrapped__() == "Fast CPU @ 3: GHz, 1 core"
        info.unlink()
        monkeypatch.setattr("platform.processor", lambda: "")
        monkeypatch.setattr("platform.machine", lambda: "arm64")
        assert machine.__wrapped__() == "arm64, 1 core"

    def test_a_gpu_is_named_where_torch_has_one(self, monkeypatch):
        """Oracle: by hand."""
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
        monkeypatch.setattr("torch.cuda.get_device_name", lambda: "A GPU")
        monkeypatch.setattr(surroundings, "n_cores", lambda: 16)
        assert machine.__wrapped__() == "A GPU, 16 cores"

    def test_cores_are_those_that_the_process_may_use(self, monkeypatch):
        """Oracle: the answers of the system, and where it has none."""
        monkeypatch.setattr("os.sched_getaffinity", lambda process: {3, 5}, raising=False)
        assert n_cores() == 2
        monkeypatch.delattr("os.sched_getaffinity")
        monkeypatch.setattr("os.cpu_count", lambda: 7)
        assert n_cores() == 7
        monkeypatch.setattr("os.cpu_count", lambda: None)
        assert n_cores() == 1


class TestVersions:
    def test_they_are_those_that_are_installed(self):
        """Oracle: the metadata of the package, and the form of a version."""
        assert versions()["torch"] == metadata.version("torch")
        assert re.match(r"\d+\.\d+", versions()["elmo_tasks"])
