"""Tests of the folder of a job: outputs that are refused, resumed and replaced."""

import errno
import fcntl
import logging
import os
from pathlib import Path

import pytest

from elmo_tasks.embed_job.formats.output_format import FORMATS, Format
from elmo_tasks.embed_job.job_folder import JobFolder
from elmo_tasks.files.checksums import checksum_path, write_checksum

JOB = {"layers": "mix", "text": "0123", "weights": [1.0]}
OTHER = {"layers": "top", "text": "0123", "weights": [1.0]}


@pytest.fixture
def folder(tmp_path):
    """Makes the folder of the output `out.h5`."""
    made = []

    def make(format="hdf5", force=False, resume=False):
        made.append(JobFolder(tmp_path / "out.h5", FORMATS[format], force=force, resume=resume))
        return made[-1]

    yield make
    for folder in made:
        folder.close()


def write_output(path, job):
    FORMATS["hdf5"].write(path, [], 0, job)
    write_checksum(path)


class TestJobFolder:
    def test_an_output_that_is_there_is_refused(self, folder, tmp_path):
        """Oracle: the message names the file and both remedies."""
        (tmp_path / "out.h5").write_text("mine")
        with pytest.raises(
            FileExistsError, match=r"out\.h5 must not be there yet, but is there: give --resume .*--force"
        ):
            folder()
        assert (tmp_path / "out.h5").read_text() == "mine"

    def test_the_parts_of_an_earlier_run_are_not_removed(self, folder, tmp_path):
        """Oracle: the message."""
        folder().open(JOB)
        with pytest.raises(
            FileExistsError, match=r"out\.h5\.parts must not be there yet, but has the parts of an earlier run"
        ):
            folder()

    def test_force_and_resume_exclude_each_other(self, folder):
        """Oracle: the message."""
        with pytest.raises(ValueError, match="choose one"):
            folder(force=True, resume=True)

    def test_the_folder_above_must_be_there(self, tmp_path):
        """Oracle: the message."""
        with pytest.raises(FileNotFoundError, match="none must be a folder, but is not"):
            JobFolder(tmp_path / "none" / "out.h5", FORMATS["hdf5"], force=False, resume=False)

    @pytest.mark.parametrize("format", ["hdf5", "parquet-folder"])
    def test_a_folder_of_another_kind_is_never_replaced(self, folder, tmp_path, format):
        """Oracle: the message; what is in it."""
        (tmp_path / "out.h5").mkdir()
        (tmp_path / "out.h5" / "mine").touch()
        with pytest.raises(FileExistsError, match=r"out\.h5 must not be there, or be a"):
            folder(format, force=True)
        assert (tmp_path / "out.h5" / "mine").exists()

    def test_another_job_does_not_resume(self, folder):
        """Oracle: the message has the difference alone."""
        first = folder()
        assert not first.open(JOB)
        first.close()
        with pytest.raises(ValueError, match=r"of another one: layers was 'mix' and is 'top'\. Give the same"):
            folder(resume=True).open(OTHER)

    def test_the_same_job_resumes_with_its_parts(self, folder):
        """Oracle: the parts that are there; half-written ones are removed."""
        first = folder()
        first.open(JOB)
        (first.path / "part-00000001.npz").touch()
        (first.path / "_tmp-1-part-00000002.npz").touch()
        first.close()
        second = folder(resume=True)
        assert not second.open(JOB)
        assert second.done() == {1}
        assert not list(second.path.glob("_tmp-*"))

    def test_parts_of_another_format_are_kept_until_the_end_and_are_not_in_the_output(self, folder, tmp_path):
        """Oracle: the names in the folder of the job when it is resumed in another format, and in the output."""
        first = folder()
        first.open(JOB)
        names = {"part-00000000.npz", "part-00000001.parquet", "part-list.txt"}
        for name in names:
            (first.path / name).touch()
        first.close()
        second = folder("parquet-folder", resume=True)
        assert not second.open(JOB) and second.done() == {1}
        assert {path.name for path in second.path.glob("part*")} == names
        second.publish()
        assert {path.name for path in (tmp_path / "out.h5").glob("part*")} == names - {"part-00000000.npz"}

    def test_force_removes_the_parts_of_another_format(self, folder):
        """Oracle: the files that stay: those of the folder itself, and one that this program did not make."""
        first = folder()
        first.open(JOB)
        for name in ("part-00000000.npz", "part-00000001.parquet", "part-list.txt"):
            (first.path / name).touch()
        first.close()
        second = folder("parquet-folder", force=True)
        second.open(JOB)
        assert sorted(path.name for path in second.path.iterdir()) == ["_job.json", "_lock", "part-list.txt"]

    def test_a_folder_that_replaces_another_survives_a_kill_at_any_step(self, folder, tmp_path, monkeypatch):
        """Oracle: after the resumed job the new part is the output, and nothing of the older one is left."""
        made = Format("parquet-folder", (), "parquet")
        rename, n_calls = Path.rename, 0

        def job(output: str, *, force: bool = False, resume: bool = False) -> bool:
            parts = JobFolder(tmp_path / output, made, force=force, resume=resume)
            try:
                if parts.open(JOB):
                    return True
                (parts.path / f"part-0000000{n_calls}.parquet").touch()
                parts.publish()
                return False
            finally:
                parts.close()

        for step in (0, 1):
            output = f"out-{step}"
            n_calls = 5
            job(output)

            def killed(path: Path, target: Path, step: int = step) -> Path:
                nonlocal n_calls
                n_calls += 1
                if n_calls == step + 1:
                    raise KeyboardInterrupt
                return rename(path, target)

            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(Path, "rename", killed)
                n_calls = 0
                job(output, force=True)
            n_calls = 7
            assert not job(output, resume=True)
            names = {path.name for path in (tmp_path / output).iterdir()}
            assert names == {"_job.json", "part-00000000.parquet", "part-00000007.parquet"}
            assert {path.name for path in tmp_path.iterdir() if path.name.startswith(output)} == {output}

    def test_force_starts_again(self, folder):
        """Oracle: no parts; the new job's fingerprint can be resumed."""
        first = folder()
        first.open(JOB)
        (first.path / "part-00000001.npz").touch()
        first.close()
        second = folder(force=True)
        assert not second.open(OTHER)
        assert second.done() == set()
        second.close()
        assert not folder(resume=True).open(OTHER)

    def test_a_finished_job_has_nothing_to_do(self, folder, tmp_path):
        """Oracle: its output; another job's is refused."""
        write_output(tmp_path / "out.h5", JOB)
        assert folder(resume=True).open(JOB)
        with pytest.raises(ValueError, match="layers was 'mix' and is 'top'"):
            folder(resume=True).open(OTHER)
        (tmp_path / "out.h5").write_text("mine")
        with pytest.raises(ValueError, match=r"out\.h5 is damaged or was replaced: .*--force computes it again"):
            folder(resume=True).open(JOB)
        checksum_path(tmp_path / "out.h5").unlink()
        with pytest.raises(ValueError, match="it was not made by this program"):
            folder(resume=True).open(JOB)
        write_output(tmp_path / "out.h5", JOB)
        checksum_path(tmp_path / "out.h5").unlink()
        with pytest.raises(ValueError, match=r"must have its checksum next to it, but out\.h5\.sha256 is not there"):
            folder(resume=True).open(JOB)

    def test_a_job_that_replaces_still_replaces_when_it_resumes(self, folder, tmp_path):
        """Oracle: with --force over another output and then --resume there is work to do."""
        write_output(tmp_path / "out.h5", OTHER)
        first = folder(force=True)
        assert not first.open(JOB)
        first.close()
        assert not folder(resume=True).open(JOB)

    def test_an_output_that_came_meanwhile_is_not_replaced(self, folder, tmp_path):
        """Oracle: the message."""
        first = folder()
        first.open(JOB)
        first.close()
        write_output(tmp_path / "out.h5", OTHER)
        with pytest.raises(ValueError, match="layers was 'top' and is 'mix'"):
            folder(resume=True).open(JOB)

    def test_only_one_process_has_it(self, folder):
        """Oracle: the message; the lock belongs to the open file, so that this process stands for another."""
        first = folder()
        first.open(JOB)
        with pytest.raises(BlockingIOError, match="only one process may work on"):
            folder(resume=True).open(JOB)
        first.close()
        assert not folder(resume=True).open(JOB)

    def test_a_file_system_without_locks_is_a_warning(self, folder, monkeypatch, caplog):
        """Oracle: the log; another error is raised."""

        def fail(number):
            def flock(descriptor, operation):
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(fcntl, "flock", flock)

        fail(errno.ENOSYS)
        with caplog.at_level(logging.WARNING, logger="elmo_tasks"):
            assert not folder().open(JOB)
        assert "without locks" in caplog.text
        fail(errno.EIO)
        with pytest.raises(OSError, match="Input/output error"):
            folder(resume=True).open(JOB)

    def test_files_of_others_stay(self, folder, caplog):
        """Oracle: the folder after the job."""
        made = folder()
        made.open(JOB)
        for name in ("mine.txt", "part-00000000.npz"):
            (made.path / name).touch()
        made.remove()
        assert [path.name for path in made.path.iterdir()] == ["mine.txt"]
        assert "stays" in caplog.text

    def test_a_folder_replaces_an_older_one(self, folder, tmp_path):
        """Oracle: what is in it."""
        for job, part in ((JOB, "part-00000000.parquet"), (OTHER, "part-00000001.parquet")):
            made = folder("parquet-folder", force=True)
            assert not made.open(job)
            (made.path / part).touch()
            # As a worker leaves it that is killed while it writes.
            (made.path / f"_tmp-1-{part}").touch()
            made.publish()
        assert {path.name for path in (tmp_path / "out.h5").iterdir()} == {"_job.json", "part-00000001.parquet"}
        assert [path.name for path in tmp_path.iterdir()] == ["out.h5"]
        assert folder("parquet-folder", resume=True).open(OTHER)
