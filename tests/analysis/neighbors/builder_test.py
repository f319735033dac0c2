import copy
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.analysis import TaggedSentence, build_index
from elmo_tasks.analysis.neighbors import builder, growing_files
from elmo_tasks.files import atomic_files
from elmo_tasks.files.sealed_json import read_sealed
from elmo_tasks.vectors.elmo import Elmo
from tests.analysis.neighbors.index_test import SENTENCES
from tests.paths import TINY_BILM

FILES = {"vectors.bin", "sentences.txt", "starts.npy", "lines.npy", "index.json"}


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo.from_pretrained(TINY_BILM, device="cpu")


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def interrupted(elmo: Elmo, folder: Path, after: int) -> None:
    """Builds an index of which the text ends with an error."""

    def sentences() -> Iterator[list[str]]:
        yield from SENTENCES[:after]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(elmo, sentences(), folder, batch_tokens=1, progress=False)
    assert not folder.exists()


class TestBuildIndex:
    @pytest.mark.parametrize(("dtype", "error"), [("float16", 1e-3), ("float32", 1e-6)])
    @pytest.mark.parametrize("layer", [0, 2, "mix"])
    def test_vectors_are_those_of_the_layer_with_the_length_1(self, elmo, tmp_path, layer, dtype, error):
        """Oracle: `Elmo` on each sentence by itself, divided by the lengths; the sentences, a line each."""
        folder = tmp_path / "new" / "index"
        build_index(elmo, iter(SENTENCES), folder, layer=layer, dtype=dtype, batch_tokens=12, progress=False)
        assert set(contents(folder)) == FILES
        expected = np.concatenate([elmo.embed([words], layers=layer)[0] for words in SENTENCES])
        expected /= np.linalg.norm(expected, axis=-1, keepdims=True)
        found = np.fromfile(folder / "vectors.bin", dtype).reshape(-1, elmo.dim)
        np.testing.assert_allclose(found, expected, atol=error)
        lines = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
        assert [line.split() for line in lines] == SENTENCES

    @pytest.mark.parametrize("after", [0, 2, 5])
    def test_one_that_was_interrupted_is_resumed(self, elmo, tmp_path, monkeypatch, after):
        """Oracle: the bytes of an index that was built at once; sentences that are there are not embedded again."""
        monkeypatch.setattr("elmo_tasks.vectors.batching._BATCHES_AHEAD", 1)
        build_index(elmo, SENTENCES, tmp_path / "whole", batch_tokens=1, progress=False)
        interrupted(elmo, tmp_path / "index", after)
        embedded = []

        def counted(elmo: Elmo, lines: Iterator[list[bytes]], *rest: Any) -> Iterator[Any]:
            for line, array in original(elmo, lines, *rest):
                embedded.append(line)
                yield line, array

        original = builder._embedded
        monkeypatch.setattr(builder, "_embedded", counted)
        build_index(elmo, SENTENCES, tmp_path / "index", batch_tokens=1, progress=False)
        assert contents(tmp_path / "index") == contents(tmp_path / "whole")
        assert len(embedded) == len(SENTENCES) - after
        assert not (tmp_path / "index.part").exists()

    @pytest.mark.parametrize("name", ["vectors.bin", "sentences.txt"])
    def test_what_no_record_says_is_cut_off(self, elmo, tmp_path, monkeypatch, name):
        """
        Oracle: the bytes of an index that was built at once, after zeros were added to a file that was growing, as a
        power cut leaves them, and half a sentence, as SIGKILL does.
        """
        monkeypatch.setattr("elmo_tasks.vectors.batching._BATCHES_AHEAD", 1)
        build_index(elmo, SENTENCES, tmp_path / "whole", batch_tokens=1, progress=False)
        interrupted(elmo, tmp_path / "index", 4)
        with open(tmp_path / "index.part" / name, "ab") as file:
            file.write(bytes(320) + b"The ca")
        build_index(elmo, SENTENCES, tmp_path / "index", batch_tokens=1, progress=False)
        assert contents(tmp_path / "index") == contents(tmp_path / "whole")

    @pytest.mark.parametrize("change", [lambda content: content[:-3], lambda content: b"x" + content[1:]])
    @pytest.mark.parametrize("name", ["vectors.bin", "sentences.txt"])
    def test_what_a_record_says_is_checked(self, elmo, tmp_path, name, change):
        """Oracle: the message, of files that were cut off or changed; then no vector is written."""
        interrupted(elmo, tmp_path / "index", 4)
        path = tmp_path / "index.part" / name
        path.write_bytes(change(path.read_bytes()))
        with pytest.raises(ValueError, match=rf"'.*{name}' must be as progress.json says, but are not: .* damaged"):
            build_index(elmo, SENTENCES, tmp_path / "index", batch_tokens=1, progress=False)

    def test_a_folder_of_something_else_is_left_alone(self, elmo, tmp_path):
        """Oracle: the message, and the file."""
        (tmp_path / "index.part").mkdir()
        (tmp_path / "index.part" / "vectors.bin").write_bytes(b"mine")
        with pytest.raises(FileExistsError, match=r"has vectors.bin and no progress.json: remove the folder"):
            build_index(elmo, SENTENCES, tmp_path / "index", progress=False)
        assert (tmp_path / "index.part" / "vectors.bin").read_bytes() == b"mine"

    def test_a_full_disk_is_named_and_the_build_resumes(self, elmo, tmp_path, monkeypatch):
        """Oracle: the message; with room, the bytes of an index that was built at once."""
        monkeypatch.setattr("elmo_tasks.vectors.batching._BATCHES_AHEAD", 1)
        build_index(elmo, SENTENCES, tmp_path / "whole", batch_tokens=1, progress=False)
        monkeypatch.setattr(growing_files, "_SECONDS_BETWEEN_RECORDS", -1)
        room = [True] * 5

        def full(descriptor: int) -> None:
            if not room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            room.pop()

        with monkeypatch.context() as patch:
            patch.setattr(growing_files.os, "fsync", full)
            patch.setattr(atomic_files, "sync", lambda path: None)
            with pytest.raises(OSError, match=r"\[Errno 28\] No space left on device: '.*index\.part/sentences\.txt'"):
                build_index(elmo, SENTENCES, tmp_path / "index", batch_tokens=1, progress=False)
        assert read_sealed(tmp_path / "index.part" / "progress.json")["n_items"] == 2
        build_index(elmo, SENTENCES, tmp_path / "index", batch_tokens=1, progress=False)
        assert contents(tmp_path / "index") == contents(tmp_path / "whole")

    def test_it_is_resumed_only_with_the_same(self, elmo, tmp_path, monkeypatch):
        """Oracle: the messages, for another setting, another text, and a shorter one."""
        monkeypatch.setattr("elmo_tasks.vectors.batching._BATCHES_AHEAD", 1)
        interrupted(elmo, tmp_path / "index", 3)
        for kwargs in ({"layer": 0}, {"dtype": "float32"}, {"about": {"bilm": "other"}}):
            with pytest.raises(
                ValueError,
                match=r"interrupted, with the settings .* can be resumed only with the same.*: give the same",
            ):
                build_index(elmo, SENTENCES, tmp_path / "index", progress=False, **kwargs)
        weights, precision = copy.deepcopy(elmo), copy.deepcopy(elmo)
        weights.bilm.character_encoder.projection.bias += 1
        precision.bilm.precision = "tf32"
        for changed in (weights, precision):
            with pytest.raises(ValueError, match="interrupted, with the settings"):
                build_index(changed, SENTENCES, tmp_path / "index", progress=False)
        other = [SENTENCES[0], ["Other"], *SENTENCES[2:]]
        with pytest.raises(ValueError, match=r"only with the same text, but sentence 1 of the text is now 'Other'"):
            build_index(elmo, other, tmp_path / "index", progress=False)
        with pytest.raises(ValueError, match=r"only with the same text, but sentence 1 of the text is now ''"):
            build_index(elmo, SENTENCES[:1], tmp_path / "index", progress=False)

    def test_two_processes_do_not_build_one(self, elmo, tmp_path):
        """Oracle: the message, while the lock is held, as another process holds it."""
        (tmp_path / "index.part").mkdir()
        with builder._locked(tmp_path / "index.part" / "lock"):
            with pytest.raises(FileExistsError, match=r"another is building '.*index\.part'"):
                build_index(elmo, SENTENCES, tmp_path / "index", progress=False)

    def test_wrong_arguments_are_errors(self, elmo, tmp_path):
        """Oracle: the messages."""
        with pytest.raises(FileExistsError, match=r"must not be there yet"):
            build_index(elmo, SENTENCES, tmp_path)
        folder = tmp_path / "index"
        with pytest.raises(ValueError, match=r"dtype must be one of 'float16', 'float32', 'int8', but is 'int4'"):
            build_index(elmo, SENTENCES, folder, dtype="int4")
        with pytest.raises(ValueError, match=r"must hold at least one sentence"):
            build_index(elmo, [], folder, progress=False)
        with pytest.raises(ValueError, match="at least one word, but has none"):
            build_index(elmo, [[], []], folder, progress=False)
        with pytest.raises(ValueError, match=r"without white space, and not empty, .* but the text has \['New York'\]"):
            build_index(elmo, [["New York"]], folder, progress=False)

    def test_several_layers_are_embedded_at_once(self, elmo, tmp_path):
        """Oracle: the vectors of indexes of one layer each; `--layer` names the file."""
        several = build_index(elmo, SENTENCES, tmp_path / "several", layer=[0, "mix", "top"], progress=False)
        for layer in (0, "mix", "top"):
            one = build_index(elmo, SENTENCES, tmp_path / f"of-{layer}", layer=layer, progress=False)
            found = (tmp_path / "several" / f"vectors-{layer}.bin").read_bytes()
            wanted = np.frombuffer((one.folder / "vectors.bin").read_bytes(), np.float16)
            np.testing.assert_allclose(np.frombuffer(found, np.float16), wanted, atol=1e-3)
        assert several.layers == [0, "mix", "top"]
        assert "layer" not in several.about and one.about["layer"] == "top"

    def test_int8_has_the_directions_of_float32(self, elmo, tmp_path):
        """Oracle: the cosines between both are 1 but for the rounding."""
        arrays = []
        for dtype in ("float32", "int8"):
            build_index(elmo, SENTENCES, tmp_path / dtype, dtype=dtype, progress=False)
            array = np.fromfile(tmp_path / dtype / "vectors.bin", dtype).reshape(-1, elmo.dim).astype(float)
            arrays.append(array / np.linalg.norm(array, axis=1, keepdims=True))
        assert (arrays[0] * arrays[1]).sum(1).min() > 0.9999
        assert np.abs(np.fromfile(tmp_path / "int8" / "vectors.bin", "int8")).max() == 127

    def test_tags_are_kept_and_resumed(self, elmo, tmp_path, monkeypatch):
        """Oracle: the lines by hand, and the bytes of an index that was built at once; other tags are another text."""
        monkeypatch.setattr("elmo_tasks.vectors.batching._BATCHES_AHEAD", 1)
        tagged = [TaggedSentence(words, [word.lower() for word in words], ["X"] * len(words)) for words in SENTENCES]
        build_index(elmo, tagged, tmp_path / "whole", batch_tokens=1, progress=False)
        assert (tmp_path / "whole" / "lemma.txt").read_text().splitlines()[:2] == [
            "they play on saturday .",
            "the play was long .",
        ]
        assert (tmp_path / "whole" / "pos.txt").read_text().splitlines()[4] == "X X"

        def broken() -> Iterator[TaggedSentence]:
            yield from tagged[:3]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            build_index(elmo, broken(), tmp_path / "index", batch_tokens=1, progress=False)
        other = [tagged[0]._replace(pos=["Y"] * 5), *tagged[1:]]
        with pytest.raises(ValueError, match=r"only with the same text, but sentence 0"):
            build_index(elmo, other, tmp_path / "index", batch_tokens=1, progress=False)
        build_index(elmo, tagged, tmp_path / "index", batch_tokens=1, progress=False)
        assert contents(tmp_path / "index") == contents(tmp_path / "whole")
        with pytest.raises(ValueError, match=r"all have tags, or none"):
            build_index(elmo, [tagged[0], SENTENCES[0]], tmp_path / "mixed", progress=False)

    @pytest.mark.parametrize("layer", [[], ["top", "top"], ["top", 2], 3, [0, "all"], True])
    def test_other_layers_are_errors(self, elmo, tmp_path, layer):
        """Oracle: the message."""
        with pytest.raises(ValueError, match=r"^layers must be"):
            build_index(elmo, SENTENCES, tmp_path / "index", layer=layer, progress=False)
