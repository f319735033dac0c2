import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.files.atomic_files import atomic_file, atomic_folder, check_not_input, locked


def kill_in(function: Callable[..., None], *arguments: object) -> None:
    """Runs a function, which kills its process, in a new process."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill(temporary: Path) -> None:
    """Writes something to the temporary file, or into the temporary folder."""
    if temporary.is_dir():
        (temporary / "b").touch()
    else:
        temporary.touch()


@pytest.mark.parametrize("begin", [atomic_file, atomic_folder])
def test_an_error_leaves_nothing(tmp_path, begin):
    with pytest.raises(KeyboardInterrupt), begin(tmp_path / "a") as temporary:
        fill(temporary)
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


class TestAtomicFile:
    def test_the_old_file_is_kept_until_the_new_one_is_whole(self, tmp_path):
        path = tmp_path / "a"
        path.write_text("old")
        with atomic_file(path) as temporary:
            temporary.write_text("new")
            assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]
        assert path.read_text() == "new"

    @pytest.mark.parametrize("begin", [atomic_file, atomic_folder])
    def test_the_target_of_a_link_is_written(self, tmp_path, begin):
        (tmp_path / "target").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "target" / "a")
        with begin(tmp_path / "link") as temporary:
            fill(temporary)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target" / "a").exists()


class TestAtomicFolder:
    def test_a_folder_appears_only_when_complete(self, tmp_path):
        with atomic_folder(tmp_path / "new" / "folder") as temporary:
            (temporary / "a").write_text("text")
            assert not (tmp_path / "new" / "folder").exists()
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]
        assert (tmp_path / "new" / "folder" / "a").read_text() == "text"

    def test_what_a_killed_process_left_is_removed(self, tmp_path):
        def write() -> None:
            with atomic_folder(tmp_path / "folder") as temporary:
                (temporary / "half").touch()
                kill()

        # Of the user.
        for name in ("_old-folder", "_tmp-folder", "_old-0123456789ab-folder2"):
            (tmp_path / name).mkdir()
        before = set(tmp_path.iterdir())
        kill_in(write)
        assert [path.name for path in tmp_path.glob("*/half")] == ["half"]
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").touch()
        assert set(tmp_path.rglob("*")) - before == {tmp_path / "folder", tmp_path / "folder" / "a"}

    def test_an_old_folder_that_a_killed_process_moved_away_is_put_back(
        self, tmp_path, monkeypatch
    ):
        def write(name: str, end: Callable[[], None]) -> None:
            with atomic_folder(tmp_path / "folder", {"old", "new"}) as temporary:
                (temporary / name).touch()
                end()

        write("old", lambda: None)
        replace = os.replace

        def replace_or_kill(source: Path, target: Path) -> None:
            if "_tmp-" in str(source):
                kill()
            replace(source, target)

        monkeypatch.setattr(os, "replace", replace_or_kill)
        kill_in(write, "new", lambda: None)
        monkeypatch.undo()
        assert not (tmp_path / "folder").exists()
        with pytest.raises(ZeroDivisionError):
            write("new", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        assert [path.name for path in tmp_path.rglob("*")] == ["folder", "old"]

    def test_of_two_writers_the_second_gets_an_error(self, tmp_path):
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").touch()
            with pytest.raises(BlockingIOError), atomic_folder(tmp_path / "folder"):
                pass
        assert [path.name for path in tmp_path.rglob("*")] == ["folder", "a"]

    def test_only_a_folder_of_replaceable_files_is_replaced(self, tmp_path):
        with atomic_folder(tmp_path / "folder") as temporary:
            (temporary / "a").touch()
        with pytest.raises(FileExistsError), atomic_folder(tmp_path / "folder", {"b"}):
            pass
        assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a"]
        with atomic_folder(tmp_path / "folder", {"a", "b"}) as temporary:
            (temporary / "b").touch()
        assert [path.name for path in (tmp_path / "folder").iterdir()] == ["b"]


class TestLocked:
    def test_a_lock_ends_with_its_process_also_if_a_worker_survives(self, tmp_path):
        def hold() -> None:
            with locked(tmp_path):
                worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(5,))
                worker.start()
                (tmp_path / "held").touch()
                time.sleep(0.5)
                kill()

        process = multiprocessing.get_context("fork").Process(target=hold)
        process.start()
        while not (tmp_path / "held").exists():
            time.sleep(0.01)
        with pytest.raises(BlockingIOError, match=tmp_path.name), locked(tmp_path):
            pass
        process.join(60)
        with locked(tmp_path) as is_locked:
            assert is_locked
        assert not list(tmp_path.parent.glob("_lock-*"))


class TestCheckNotInput:
    def test_a_file_is_recognised_under_any_name(self, tmp_path):
        (tmp_path / "text").touch()
        (tmp_path / "link").symlink_to(tmp_path / "text")
        for output, source in (("text", "text"), ("link", "text"), ("text", "link")):
            with pytest.raises(ValueError):
                check_not_input(tmp_path / output, tmp_path / "other", tmp_path / source)
        check_not_input(tmp_path / "text", tmp_path / "other")
        check_not_input(tmp_path / "new", tmp_path / "text")
        # The same terminal may be input and output.
        check_not_input(Path("/dev/null"), "/dev/null")
