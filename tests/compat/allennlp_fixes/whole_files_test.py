"""Tests of elmo_tasks.compat.allennlp_fixes.whole_files."""

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import archive_model, load_archive
from allennlp.training import GradientDescentTrainer, gradient_descent_trainer

from elmo_tasks.compat.allennlp_fixes import archives
from elmo_tasks.compat.allennlp_fixes.archives import read_archive
from elmo_tasks.files.checksums import check_file, write_checksum
from tests.compat.allennlp_fixes.archives_test import CONFIG


class KilledError(Exception):
    """Stands for a signal in the middle of a write."""


def half(path: object, *args: object, **kwargs: object) -> None:
    Path(str(path)).write_bytes(b"half")
    raise KilledError


class TestConfigs:
    def test_a_config_is_written(self, tmp_path):
        """Oracle: the config."""
        Params({"a": {"b": 1}}).to_file(str(tmp_path / "config.json"))
        assert Params.from_file(str(tmp_path / "config.json")).as_dict() == {"a": {"b": 1}}
        assert [path.name for path in tmp_path.iterdir()] == ["config.json"]

    def test_half_of_one_is_never_there(self, tmp_path, monkeypatch):
        """Oracle: the files after an error in the middle: the older one stays."""
        Params({"a": 1}).to_file(str(tmp_path / "config.json"))
        monkeypatch.setattr("json.dump", lambda content, file, **kwargs: half(file.name))
        with pytest.raises(KilledError):
            Params({"a": 2}).to_file(str(tmp_path / "config.json"))
        monkeypatch.undo()
        assert Params.from_file(str(tmp_path / "config.json")).as_dict() == {"a": 1}
        assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


class TestBestWeights:
    def test_half_of_them_are_never_there(self, tmp_path, monkeypatch):
        """Oracle: the file after an error in the middle: the older weights stay."""
        trainer = GradientDescentTrainer.__new__(GradientDescentTrainer)
        trainer._ddp_wrapped_model, trainer.model = None, torch.nn.Linear(2, 2)
        path = tmp_path / "best.th"
        trainer._save_model_state(str(path))
        expected = torch.load(path, weights_only=True)
        monkeypatch.setattr(torch, "save", lambda state, file: half(file.name))
        trainer.model = torch.nn.Linear(2, 2)
        with pytest.raises(KilledError):
            trainer._save_model_state(str(path))
        found = torch.load(path, weights_only=True)
        assert all(torch.equal(found[name], weight) for name, weight in expected.items())
        # Without a checksum of the older weights, which the newer would not have.
        assert [file.name for file in tmp_path.iterdir()] == ["best.th"]

    def test_their_checksum_is_that_of_the_last(self, tmp_path):
        """Oracle: the comparison of a file with its checksum, after two epochs that were the best."""
        trainer = GradientDescentTrainer.__new__(GradientDescentTrainer)
        trainer._ddp_wrapped_model = None
        for _ in range(2):
            trainer.model = torch.nn.Linear(2, 2)
            trainer._save_model_state(str(tmp_path / "best.th"))
            assert check_file(tmp_path / "best.th")
        torch.save({}, tmp_path / "checkpoint.th")
        (tmp_path / "best.th").unlink()
        gradient_descent_trainer.hardlink_or_copy(str(tmp_path / "checkpoint.th"), str(tmp_path / "best.th"))
        assert not check_file(tmp_path / "best.th")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What is left of a training: config, vocabulary and weights of the model of `archives_test.py`."""
    Params(CONFIG).to_file(str(tmp_path / "config.json"))
    (tmp_path / "vocabulary").mkdir()
    (tmp_path / "vocabulary" / "non_padded_namespaces.txt").write_text("*tags\n*labels\n")
    torch.save({"weight": torch.ones(4000)}, tmp_path / "best.th")
    return tmp_path


class TestArchives:
    def test_an_archive_is_written_and_loads(self, run):
        """Oracle: the weights."""
        assert archive_model(str(run)) == str(run / "model.tar.gz")
        assert torch.equal(load_archive(run / "model.tar.gz").model.weight, torch.ones(4000))
        assert not list(run.glob("_tmp-*"))

    def test_what_a_killed_training_has_unpacked_is_removed(self, run, monkeypatch):
        """Oracle: the files; a kill lets nothing clean up."""
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(archives, "_extract", Mock(side_effect=KeyboardInterrupt))
            patched.setattr(archives.shutil, "rmtree", Mock())
            patched.setattr(Path, "unlink", Mock())
            archive_model(str(run))
        assert len(list(run.glob("_tmp-*"))) == 2
        archive_model(str(run))
        assert not list(run.glob("_tmp-*"))

    def test_other_files_and_other_places(self, run):
        """Oracle: by hand; the arguments of AllenNLP's function."""
        (run / "notes.txt").write_text("mine")
        (run / "elsewhere").mkdir()
        path = archive_model(str(run), archive_path=str(run / "elsewhere"), include_in_archive=["notes.txt"])
        assert path == str(run / "elsewhere" / "model.tar.gz")
        with read_archive(path) as folder:
            assert Path(folder, "notes.txt").read_text() == "mine"

    def test_half_weights_make_no_archive(self, run):
        """Oracle: an error in place of success, and the older archive."""
        archive_model(str(run))
        before = (run / "model.tar.gz").read_bytes()
        (run / "best.th").write_bytes((run / "best.th").read_bytes()[:-100])
        with pytest.raises(ConfigurationError, match=r"model\.tar\.gz was not written, since its weights are damaged"):
            archive_model(str(run))
        assert (run / "model.tar.gz").read_bytes() == before
        assert not list(run.glob("_tmp-*"))

    @pytest.mark.parametrize("place", [0.3, 0.5, 0.8])
    def test_a_flipped_bit_in_the_weights_makes_no_archive(self, run, place):
        """Oracle: an error in place of success; torch itself loads such a file."""
        content = bytearray((run / "best.th").read_bytes())
        content[int(place * len(content))] ^= 16
        (run / "best.th").write_bytes(content)
        torch.load(run / "best.th", weights_only=True)
        with pytest.raises(ConfigurationError, match=r"its weights are damaged: .*best\.th .*checksum"):
            archive_model(str(run))
        assert not (run / "model.tar.gz").exists()

    def test_other_weights_than_those_of_the_run_make_no_archive(self, run):
        """Oracle: the message; the file itself is whole."""
        write_checksum(run / "best.th")
        torch.save({"weight": torch.zeros(4000)}, run / "best.th")
        with pytest.raises(ConfigurationError, match="is damaged or was replaced"):
            archive_model(str(run))

    def test_missing_weights_make_no_archive(self, run):
        """Oracle: the message."""
        (run / "best.th").unlink()
        with pytest.raises(ConfigurationError, match=r"must be in .*best\.th, but that file does not exist"):
            archive_model(str(run))
