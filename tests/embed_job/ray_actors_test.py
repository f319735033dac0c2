"""Tests of a job on Ray."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_tasks.embed_job import ray_actors
from elmo_tasks.embed_job.options import EmbedOptions
from elmo_tasks.embed_job.part_worker import PartWork
from elmo_tasks.embed_job.ray_actors import options_on_ray


def actors() -> list[int]:
    """Processes of Ray's actors that are descendants of this process."""
    parents, names = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            names[int(folder.name)] = (folder / "cmdline").read_bytes()
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # It has ended meanwhile.
            continue

    def is_ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and is_ours(parents[process]))

    return [process for process, name in names.items() if name.startswith(b"ray::PartWorker") and is_ours(process)]


def is_writing(process: int) -> bool:
    """Whether a process has half a file open."""
    try:
        return any("_tmp-" in os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir())
    except OSError:  # It has closed a file, or ended, meanwhile.
        return False


@pytest.mark.slow
class TestEmbedOnRay:
    def test_each_line_is_there_once_though_an_actor_is_killed(self, embed, text, tmp_path, slow_ray):
        """Oracle: the same job in this process, file by file; an actor is killed while it writes one of 100 parts."""
        pytest.importorskip("ray")
        parquet = pytest.importorskip("pyarrow.parquet")
        text.write_text("".join(f"{number} and some more words\n" for number in range(300)))
        embed("whole", format="parquet-folder")
        killed: list[int] = []

        def kill_one() -> None:
            while not list(tmp_path.glob("out.parts/part-*")):
                time.sleep(0.002)
            found = actors()
            while not killed and (tmp_path / "out.parts").exists():
                for process in found:
                    os.kill(process, signal.SIGSTOP)
                    if not killed and is_writing(process):
                        os.kill(process, signal.SIGKILL)
                        killed.append(process)
                    else:
                        os.kill(process, signal.SIGCONT)
                time.sleep(0.001)

        thread = threading.Thread(target=kill_one, daemon=True)
        thread.start()
        report = embed("out", ray="local", workers=2)
        thread.join()
        assert killed and killed[0] not in actors()
        assert report.n_lines == 300 and report.n_tokens == 1500
        names = sorted(path.name for path in (tmp_path / "whole").iterdir())
        assert len(names) == 101 and sorted(path.name for path in (tmp_path / "out").iterdir()) == names
        for name in names:
            assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
        table = parquet.read_table(tmp_path / "out")
        assert table["index"].to_pylist() == list(range(300))

    def test_an_address_without_a_cluster_is_an_error(self, embed):
        """Oracle: the message names the address."""
        pytest.importorskip("ray")
        pytest.importorskip("pyarrow")
        with pytest.raises(OSError, match=r"--ray must be the address of a running cluster, .* but is 'no://where'"):
            embed("out", ray="no://where")


class TestErrorsOfRay:
    def test_every_one_is_an_error_of_python(self, monkeypatch, tmp_path):
        """Oracle: the messages by hand, for classes that derive from each other as Ray's do; none is Ray's."""

        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            cause = ValueError("the cause")

        class RayActorError(RayError):
            pass

        class ObjectLostError(RayError):
            pass

        exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, RayActorError=RayActorError)
        monkeypatch.setattr(ray_actors, "require_ray", lambda: SimpleNamespace(exceptions=exceptions))
        for error, expected in (
            (RayTaskError(), "ValueError: the cause"),
            (RayActorError("killed"), "RuntimeError: the actors of a part died 4 times, the last error was: killed"),
            (ObjectLostError("gone"), "RuntimeError: Ray failed (ObjectLostError: gone): resume with --resume"),
        ):

            def session(*arguments, error=error, **rest):
                raise error

            monkeypatch.setattr(ray_actors, "ray_session", session)
            with pytest.raises((ValueError, RuntimeError)) as caught:
                list(ray_actors.embed_on_ray("local", 1, PartWork(EmbedOptions(), tmp_path, "npz", "0123", ""), []))
            assert f"{caught.type.__name__}: {caught.value}" == expected


class TestRequireRay:
    def test_without_ray_an_error_says_how_to_get_it(self, embed, monkeypatch):
        """Oracle: the message; `None` in `sys.modules` is a module that cannot be found."""
        monkeypatch.setitem(sys.modules, "ray", None)
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'elmo_tasks\[ray\]'"):
            embed("out", ray="local")


class TestOptionsOnRay:
    def test_the_device_is_that_of_the_options_or_the_cpu(self):
        """Oracle: by hand."""
        assert options_on_ray(EmbedOptions()).device == "cpu"
        assert options_on_ray(EmbedOptions(device="cuda")).device == "cuda"
