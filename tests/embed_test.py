"""Tests of the job that writes the vectors of a text into a file."""

import hashlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmo_tasks import Elmo
from elmo_tasks.__main__ import main
from elmo_tasks.embed import EmbedOptions, Hdf5Layout, embed_file
from tests.paths import TINY_BILM

LINES = ["A dog barks .", "", "The  dog sleeps .", *(f"line {n} has words" for n in range(9)), "A dog barks ."]
BILM = str(TINY_BILM)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.from_pretrained(BILM)


@pytest.mark.parametrize(
    "arguments", [{}, {"layers": "all"}, {"layers": 1, "gamma": 2.0}, {"weights": (1.0, 0.0, 2.0)}, {"pool": "max"}]
)
def test_hdf5_has_the_vectors_of_embed(text, tmp_path, elmo, arguments):
    assert embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM, part_lines=4, **arguments), elmo=elmo) == len(LINES)
    expected = elmo.embed([line.split() for line in LINES], **arguments)
    with h5py.File(tmp_path / "out.h5") as file:
        # In the order of the lines, and not 0, 1, 10.
        assert list(file)[: len(LINES)] == [str(index) for index in range(len(LINES))]
        assert file["sentences"].asstr()[:].tolist() == [" ".join(line.split()) for line in LINES]
        index = json.loads(file["sentence_to_index"].asstr()[0])
        assert index["The dog sleeps ."] == "2" and index["A dog barks ."] == str(len(LINES) - 1)
        for number, array in enumerate(expected):
            np.testing.assert_allclose(file[str(number)][()], array, atol=1e-6)
    assert not (tmp_path / "out.h5.parts").exists()


def test_the_layouts_of_allennlp(text, tmp_path, elmo):
    layout = Hdf5Layout.of_allennlp(forget_sentences=True, use_sentence_keys=False)
    embed_file(text, tmp_path / "out.h5", EmbedOptions(BILM), layout=layout, elmo=elmo)
    with h5py.File(tmp_path / "out.h5") as file:
        assert list(file) == [str(index) for index in range(len(LINES))]
    text.write_text("A dog barks .\nIt sleeps .\n")
    layout = Hdf5Layout.of_allennlp(forget_sentences=False, use_sentence_keys=True)
    embed_file(text, tmp_path / "keys.h5", EmbedOptions(BILM), layout=layout, elmo=elmo)
    with h5py.File(tmp_path / "keys.h5") as file:
        assert list(file) == ["A dog barks .", "It sleeps ."]


def test_parquet_has_the_vectors_of_embed(text, tmp_path, elmo):
    parquet = pytest.importorskip("pyarrow.parquet")
    embed_file(text, tmp_path / "out.parquet", EmbedOptions(BILM, part_lines=5, dtype="float16"), elmo=elmo)
    rows = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [row["index"] for row in rows] == list(range(len(LINES)))
    for row, array in zip(rows, elmo.embed([line.split() for line in LINES]), strict=True):
        found = np.array(row["vectors"], np.float16).reshape(row["shape"])
        assert np.array_equal(found, array.astype(np.float16))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_job_resumes_to_the_same_bytes(tmp_path, elmo, workers):
    text, output = tmp_path / "text.txt", tmp_path / "out.h5"
    text.write_text("".join(f"{line} {n}\n" for n, line in enumerate(LINES * 200)))
    options = EmbedOptions(BILM, part_lines=50)
    embed_file(text, tmp_path / "whole.h5", options, elmo=elmo)
    command = [sys.executable, "-m", "elmo_tasks", "embed", text, output, "--bilm", BILM, "--part-lines", "50"]
    job = subprocess.Popen([*command, "--device", "cpu"])
    while job.poll() is None and not list(tmp_path.glob("out.h5.parts/part-*")):
        time.sleep(0.01)
    job.send_signal(signal.SIGKILL)
    job.wait()
    embed_file(text, output, EmbedOptions(BILM, part_lines=50, device="cpu"), resume=True, workers=workers)
    with h5py.File(output) as file, h5py.File(tmp_path / "whole.h5") as whole:
        assert list(file) == list(whole)
        assert all(np.array_equal(file[name][()], whole[name][()]) for name in whole)
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "out.h5", "whole.h5"}


def test_the_same_job_writes_the_same_bytes(text, tmp_path, elmo):
    digests = set()
    for name in ("a.h5", "b.h5"):
        embed_file(text, tmp_path / name, EmbedOptions(BILM), elmo=elmo)
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1


def test_parts_of_a_different_job_are_refused_by_name(text, tmp_path, elmo):
    output = tmp_path / "out.h5"
    folder = tmp_path / "out.h5.parts"
    with pytest.raises(ValueError, match="float16"):
        embed_file(text, output, EmbedOptions(BILM, dtype="float16", gamma=1e9), elmo=elmo)
    assert folder.exists()
    with pytest.raises(FileExistsError, match=folder.name):
        embed_file(text, output, EmbedOptions(BILM), elmo=elmo)
    with pytest.raises(ValueError, match=r"gamma was 1000000000\.0, now 1\.0"):
        embed_file(text, output, EmbedOptions(BILM, dtype="float16"), resume=True, elmo=elmo)
    embed_file(text, output, EmbedOptions(BILM), force=True, elmo=elmo)
    with pytest.raises(FileExistsError, match=output.name):
        embed_file(text, output, EmbedOptions(BILM), elmo=elmo)


@pytest.mark.parametrize(
    ("content", "options", "names"),
    [
        (b"a b\n\xff\n", {}, "line 2"),
        (b"a\n", {"bilm": "smal-open"}, "small-open"),
        (b"a\n", {"layers": 7}, "7"),
        (b"a\n", {"pool": "median"}, "median"),
    ],
)
def test_bad_input_is_named(tmp_path, content, options, names):
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(ValueError, match=names):
        embed_file(tmp_path / "text.txt", tmp_path / "out.h5", EmbedOptions(**{"bilm": BILM, **options}))


def test_the_command_line(text, tmp_path, capsys):
    output = tmp_path / "out.h5"
    command = ["embed", str(text), str(output), "--bilm", BILM, "--layers", "all", "--weights"]
    assert main([*command[:-1], "--dtype", "float16", "--no-progress"]) == 0
    assert f"{len(LINES)} lines" in capsys.readouterr().out
    with h5py.File(output) as file:
        assert file["0"].shape[:2] == (3, 4)
        assert file["0"].dtype == np.float16
