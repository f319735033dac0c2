"""Tests of elmo_tasks.files.checksums."""

import hashlib
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from elmo_tasks.files import checksums
from elmo_tasks.files.checksums import check_file, checksum_path, sha256_of, write_checksum


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(bytes(range(256)) * 10_000)
    return path


class TestSha256Of:
    def test_it_is_the_sha256(self, file):
        """Oracle: hashlib on the whole content."""
        assert sha256_of(file) == hashlib.sha256(file.read_bytes()).hexdigest()

    def test_an_unchanged_file_is_hashed_once(self, file, monkeypatch):
        """
        Oracle: the number of hashes; a changed file of the same size is hashed again, and so is one that has just been
        written, since a change within a tick of the clock would not show.
        """
        calls = []
        original = hashlib.sha256
        monkeypatch.setattr(checksums.hashlib, "sha256", lambda: calls.append(1) or original())
        # However long this takes, the change is not long ago.
        in_an_hour = time.time_ns() + 3600 * 10**9
        os.utime(file, ns=(in_an_hour, in_an_hour))
        assert sha256_of(file) == sha256_of(file) and len(calls) == 2
        os.utime(file, ns=(2, 2))
        calls.clear()
        first = sha256_of(file)
        assert sha256_of(file) == first and len(calls) == 1
        content = bytearray(file.read_bytes())
        content[5] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(1, 1))
        assert sha256_of(file) != first and len(calls) == 2

    def test_threads_may_ask_at_once(self, file):
        """Oracle: hashlib."""
        found = []
        threads = [threading.Thread(target=lambda: found.append(sha256_of(file))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(found) == {hashlib.sha256(file.read_bytes()).hexdigest()} and len(found) == 8


class TestCheckFile:
    def test_a_whole_file_passes(self, file):
        """Oracle: the file as it was written."""
        write_checksum(file)
        assert check_file(file)

    @pytest.mark.parametrize("place", [0, 1234, -1])
    def test_a_flipped_bit_is_an_error(self, file, place):
        """Oracle: the message, with the file."""
        write_checksum(file)
        content = bytearray(file.read_bytes())
        content[place] ^= 4
        file.write_bytes(content)
        os.utime(file, ns=(1, 1))
        with pytest.raises(ValueError, match=r"weights\.bin is damaged or was replaced"):
            check_file(file)

    def test_a_file_that_was_cut_off_is_an_error(self, file):
        """Oracle: the message."""
        write_checksum(file)
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(ValueError, match="damaged"):
            check_file(file)

    def test_without_a_checksum_there_is_nothing_to_compare(self, file):
        """Oracle: by hand."""
        assert not check_file(file)

    @pytest.mark.parametrize("content", [b"", b"short  weights.bin\n", b"\xff\xfe" * 40, b"g" * 64])
    def test_an_unreadable_checksum_is_an_error(self, file, content):
        """Oracle: the message, with both files."""
        checksum_path(file).write_bytes(content)
        with pytest.raises(ValueError, match=r"weights\.bin\.sha256 must hold the SHA-256 of weights\.bin"):
            check_file(file)

    @pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs the command sha256sum")
    def test_other_programs_read_it(self, file):
        """Oracle: `sha256sum --check`."""
        write_checksum(file)
        command = ["sha256sum", "--check", "--strict", checksum_path(file).name]
        assert subprocess.run(command, cwd=file.parent, capture_output=True).returncode == 0

    def test_the_checksum_of_another_program_is_read(self, file):
        """Oracle: the form of `shasum` and of Windows: capital letters, an asterisk before the name."""
        checksum_path(file).write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest().upper()} *weights.bin\n")
        assert check_file(file)
