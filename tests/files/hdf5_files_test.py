"""Tests of elmo_tasks.files.hdf5_files."""

import errno
import resource
import subprocess
import sys

import h5py
import numpy as np
import pytest

from elmo_tasks.files.hdf5_files import new_hdf5


class TestNewHdf5:
    def test_a_file_is_written(self, tmp_path):
        """Oracle: h5py, with a dataset that was overwritten and read back meanwhile."""
        with new_hdf5(tmp_path / "a.h5") as (file, check_disk):
            file["x"] = np.zeros(1000)
            file["x"][10:20] = 1.0
            assert file["x"][...].sum() == 10
            check_disk()
        with h5py.File(tmp_path / "a.h5") as file:
            assert file["x"][...].sum() == 10

    def test_a_full_disk_is_an_error_with_the_file(self):
        """Oracle: Linux's device that is always full; the number and the name in the error."""
        with pytest.raises(OSError, match="/dev/full") as raised, new_hdf5("/dev/full") as (file, _):
            file["x"] = np.zeros(1000)
        assert raised.value.errno == errno.ENOSPC

    def test_a_process_survives_it(self, tmp_path):
        """Oracle: the status of a process, which HDF5 alone ends with a segmentation fault."""
        code = (
            f"import numpy as np\nfrom elmo_tasks.bilm.weight_file import write_arrays\n"
            f"arrays = {{str(i): np.random.rand(5000).astype('f4') for i in range(8)}}\n"
            f"try:\n    write_arrays({str(tmp_path / 'weights.hdf5')!r}, arrays)\n"
            f"except OSError as error:\n    print(error.errno, error.filename)"
        )
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # noqa: E731
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, preexec_fn=limit)
        assert (ended.returncode, ended.stdout) == (0, f"{errno.EFBIG} {tmp_path / 'weights.hdf5'}\n"), ended.stderr
        assert not list(tmp_path.iterdir())
