"""Tests of elmo_tasks.bilm.weight_file: files of weights from a stranger."""

import json
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.weight_file import open_weights, write_arrays
from tests.bilm.helpers import random_bilm

ARRAYS = {
    "group/a": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "b": np.ones(1, np.float32),
    "half": np.linspace(0, 1, 5).astype(np.float16),
}
KINDS = ["hdf5", "safetensors"]


@pytest.fixture(params=KINDS)
def path(request, tmp_path: Path) -> Path:
    path = tmp_path / f"weights.{request.param}"
    write_arrays(path, ARRAYS)
    return path


def read(path: Path, key: str = "a") -> np.ndarray:
    with open_weights(path) as file:
        return file.read(key)


@pytest.fixture
def hdf5(tmp_path: Path) -> Callable[..., Path]:
    """Writes an HDF5 file with a function of the open file."""

    def write(function: Callable[[h5py.File], object]) -> Path:
        with h5py.File(tmp_path / "weights.hdf5", "w") as file:
            function(file)
        return tmp_path / "weights.hdf5"

    return write


class TestOpenWeights:
    def test_what_was_written_comes_back(self, path):
        """Oracle: the arrays, in float32."""
        with open_weights(path) as file:
            assert file.names() == set(ARRAYS)
            for key, array in ARRAYS.items():
                assert file.shape(key) == array.shape
                assert file.read(key).dtype == np.float32
                assert np.array_equal(file.read(key), array.astype(np.float32))

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_missing_file_is_the_error_of_the_system(self, tmp_path, kind):
        """Oracle: `FileNotFoundError`."""
        with pytest.raises(FileNotFoundError), open_weights(tmp_path / f"none.{kind}"):
            pass

    def test_a_file_that_was_cut_off_is_an_error(self, path):
        """Oracle: the message, with the file, at every cut."""
        content = path.read_bytes()
        for keep in (0, 7, 8, 20, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:keep])
            with pytest.raises(ValueError, match=rf"{path.name}: a weight file must be"), open_weights(path) as file:
                for key in ARRAYS:
                    file.read(key)

    @pytest.mark.parametrize("kind", KINDS)
    def test_not_a_number_is_an_error(self, tmp_path, kind):
        """Oracle: the message, with file and key."""
        path = tmp_path / f"weights.{kind}"
        write_arrays(path, {"a": np.array([1, np.nan], np.float32)})
        with pytest.raises(ValueError, match=rf"{path.name}: 'a' must hold finite numbers"):
            read(path)

    @pytest.mark.parametrize("kind", KINDS)
    def test_whole_numbers_are_no_weights(self, tmp_path, kind):
        """Oracle: the message, with file and key."""
        path = tmp_path / f"weights.{kind}"
        write_arrays(path, {"a": np.arange(3)})
        with pytest.raises(ValueError, match=rf"{path.name}: 'a' must be an array of float16 or float32.*holds"):
            read(path)


class TestHostileHdf5:
    def test_another_file_is_not_read(self, hdf5, tmp_path):
        """Oracle: the message; HDF5 keeps the numbers of a dataset in any file that it is told."""
        secret = tmp_path / "id_rsa"
        secret.write_bytes(b"x" * 16)
        path = hdf5(lambda file: file.create_dataset("a", (4,), "f4", external=[(str(secret), 0, 16)]))
        with pytest.raises(ValueError, match=r"'a' must be.*lie in another file .*id_rsa"):
            read(path)

    @pytest.mark.parametrize("is_there", [True, False])
    def test_a_view_of_another_file_is_not_read(self, hdf5, tmp_path, is_there):
        """Oracle: the message; a source that is gone would be zeros."""
        source = tmp_path / "source.hdf5"
        if is_there:
            with h5py.File(source, "w") as file:
                file["a"] = np.ones(4, np.float32)
        layout = h5py.VirtualLayout((4,), "f4")
        layout[:] = h5py.VirtualSource(source, "a", (4,))
        with pytest.raises(ValueError, match=r"'a' must be.*it is a view of other files"):
            read(hdf5(lambda file: file.create_virtual_dataset("a", layout)))

    def test_links_are_no_names(self, hdf5, tmp_path):
        """Oracle: the names that there are."""
        with h5py.File(tmp_path / "other.hdf5", "w") as file:
            file["a"] = np.ones(4, np.float32)

        def write(file: h5py.File) -> None:
            file["mine"] = np.ones(4, np.float32)
            file["a"] = h5py.ExternalLink(str(tmp_path / "other.hdf5"), "a")
            file["b"] = h5py.SoftLink("/mine")

        with open_weights(hdf5(write)) as file:
            assert file.names() == {"mine"}

    @pytest.mark.parametrize("chunks", [None, (2,)])
    def test_what_was_never_written_is_no_zero(self, hdf5, chunks):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=r"'a' must be.*was never written, or only in part"):
            read(hdf5(lambda file: file.create_dataset("a", (8,), "f4", chunks=chunks)))

    def test_a_part_that_was_never_written_is_no_zero(self, hdf5):
        """Oracle: the message: one of four chunks is written."""

        def write(file: h5py.File) -> None:
            file.create_dataset("a", (8,), "f4", chunks=(2,))[2:4] = 1.0

        with pytest.raises(ValueError, match="was never written, or only in part"):
            read(hdf5(write))

    @pytest.mark.parametrize("dtype", ["f8", "i8", "c8", "S3", "O", [("x", "f4")], "?"])
    def test_other_types_are_refused(self, hdf5, dtype):
        """Oracle: the message; complex numbers would lose a half, strings are an error from the depths."""
        with pytest.raises(ValueError, match="'a' must be an array of float16 or float32 in the file, but holds"):
            read(
                hdf5(
                    lambda file: file.create_dataset(
                        "a", (3,), h5py.string_dtype() if dtype == "O" else np.dtype(dtype), fillvalue=None
                    )
                )
            )

    def test_a_small_file_does_not_fill_the_memory(self, hdf5):
        """Oracle: the message: gzip over gzip, 400 MB in less than 100 kB."""

        def write(file: h5py.File) -> None:
            creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            creation.set_chunk((10**8,))
            creation.set_deflate(9)
            creation.set_filter(h5py.h5z.FILTER_DEFLATE, 0, (9,))
            space = h5py.h5s.create_simple((10**8,))
            dataset = h5py.Dataset(h5py.h5d.create(file.id, b"a", h5py.h5t.IEEE_F32LE, space, creation))
            dataset[...] = np.zeros(10**8, np.float32)

        path = hdf5(write)
        assert path.stat().st_size < 100_000
        with pytest.raises(ValueError, match=r"'a' must be.*claims 400,000,000 bytes of which"):
            read(path)

    def test_every_flipped_bit_is_noticed_or_harmless(self, tmp_path):
        """Oracle: the arrays, after each of 100 random bits was flipped; ours have checksums."""
        path, draw = tmp_path / "weights.hdf5", random.Random(0)
        write_arrays(path, ARRAYS)
        content = path.read_bytes()
        for _ in range(100):
            damaged = bytearray(content)
            damaged[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            path.write_bytes(damaged)
            try:
                with open_weights(path) as file:
                    found = {key: file.read(key) for key in sorted(file.names())}
            except ValueError:
                continue
            for key in set(found) & set(ARRAYS):
                assert np.array_equal(found[key], ARRAYS[key].astype(np.float32))


class TestHostileSafetensors:
    def header(self, path: Path, header: str, content: bytes = b"\0" * 16) -> Path:
        path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + content)
        return path

    @pytest.mark.parametrize(
        "header",
        [
            "[" * 100_000,
            '{"a": 1}',
            '{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 1600000]}}',
            '{"a": {"dtype": "F32", "shape": [1000000000], "data_offsets": [0, 16]}}',
            '{"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},'
            ' "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}',
        ],
        ids=["deep", "number", "beyond the end", "too large", "double"],
    )
    def test_a_wrong_header_is_an_error(self, tmp_path, header):
        """Oracle: the message, with the file."""
        with pytest.raises(ValueError, match=r"weights\.safetensors: a weight file must be safetensors"):
            read(self.header(tmp_path / "weights.safetensors", header))

    def test_a_header_of_any_length_is_not_read(self, tmp_path):
        """Oracle: the message; the length says 2^60 bytes."""
        path = tmp_path / "weights.safetensors"
        path.write_bytes(struct.pack("<Q", 2**60) + b"{}")
        with pytest.raises(ValueError, match="its header is truncated or too long"):
            read(path)


class TestWriteArrays:
    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
    def test_a_full_disk_is_an_error_of_the_system(self, tmp_path):
        """Oracle: `OSError`, with the file."""
        path = tmp_path / "weights.hdf5"
        path.symlink_to("/dev/full")
        with pytest.raises(OSError, match=r"weights\.hdf5"):
            write_arrays(path, {"a": np.random.default_rng(0).random((300, 300), np.float32)})

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_folder_that_is_not_there_is_an_error_of_the_system(self, tmp_path, kind):
        """Oracle: `OSError`."""
        with pytest.raises(OSError):
            write_arrays(tmp_path / "nowhere" / f"weights.{kind}", ARRAYS)

    def test_other_readers_read_it(self, tmp_path):
        """Oracle: the format's own description: a header of JSON behind its length."""
        path = tmp_path / "weights.safetensors"
        write_arrays(path, ARRAYS)
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        entry = json.loads(content[8 : 8 + length])["group/a"]
        first, last = entry["data_offsets"]
        found = np.frombuffer(content[8 + length :][first:last], "<f4").reshape(entry["shape"])
        assert np.array_equal(found, ARRAYS["group/a"])


class TestBilm:
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_biLM_is_written_and_read(self, tmp_path, kind):
        """Oracle: its weights."""
        bilm, files = random_bilm(), (tmp_path / "options.json", tmp_path / f"weights.{kind}")
        bilm.save(*files)
        found = Bilm.from_files(*files).state_dict()
        assert all(torch.equal(found[name], weight) for name, weight in bilm.state_dict().items())
