"""Tests of files that torch has written."""

import errno
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.files import torch_zip
from elmo_tasks.files.torch_zip import check_zip, torch_stream


@pytest.fixture
def path(tmp_path):
    torch.save({"weight": torch.arange(5000.0)}, tmp_path / "model.th")
    return tmp_path / "model.th"


class Refusing(io.RawIOBase):
    """A file to which nothing can be written."""

    def __init__(self, number: int) -> None:
        self.number = number

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        raise OSError(self.number, os.strerror(self.number))


class TestTorchStream:
    def test_it_is_written_to(self, tmp_path):
        """Oracle: torch, which reads it."""
        with torch_stream(tmp_path / "model.th") as stream:
            torch.save({"weight": torch.arange(5000.0)}, stream)
        assert torch.equal(torch.load(tmp_path / "model.th")["weight"], torch.arange(5000.0))

    @pytest.mark.parametrize("size", [1, 100_000])
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
    def test_what_the_disk_refuses_is_an_error_of_the_system(self, monkeypatch, number, size):
        """Oracle: the number of the error; torch alone says that a position was not expected."""
        monkeypatch.setattr(torch_zip, "open", lambda *_: io.BufferedWriter(Refusing(number)), raising=False)
        with pytest.raises(OSError, match=os.strerror(number)) as raised, torch_stream(Path("model.th")) as stream:
            torch.save({"weight": torch.zeros(size)}, stream)
        assert raised.value.errno == number

    def test_another_error_stays_as_it_is(self, tmp_path):
        """Oracle: the error."""
        with pytest.raises(RuntimeError, match="another"), torch_stream(tmp_path / "model.th"):
            raise RuntimeError("another")


class TestCheckZip:
    def test_a_whole_file_passes_in_both_formats_of_torch(self, path):
        """Oracle: files that torch has written."""
        check_zip(path)
        torch.save({"weight": torch.ones(3)}, path, _use_new_zipfile_serialization=False)
        check_zip(path)

    def test_every_flipped_bit_of_the_weights_is_found(self, path):
        """Oracle: torch, which loads other weights."""
        content = path.read_bytes()
        place = content.index(torch.arange(1000.0, 1010.0).numpy().tobytes())
        damaged = bytearray(content)
        damaged[place + 2] ^= 1
        path.write_bytes(damaged)
        assert not torch.equal(torch.load(path)["weight"], torch.arange(5000.0))
        with pytest.raises(ValueError, match="checksum"):
            check_zip(path)

    def test_a_file_that_unpacks_to_more_is_refused(self, path):
        """Oracle: the message; torch would allocate what a compressed member claims."""
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(f"{path}.z", "w", zipfile.ZIP_DEFLATED) as target:
            for member in source.infolist():
                target.writestr(member.filename, source.read(member))
        with pytest.raises(ValueError, match="compressed"):
            check_zip(f"{path}.z")

    @pytest.mark.parametrize("length", [2, 100, -30])
    def test_a_file_that_is_cut_off_is_refused(self, path, length):
        """Oracle: the message."""
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(ValueError, match="damaged"):
            check_zip(path)
