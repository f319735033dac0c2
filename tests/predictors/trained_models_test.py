"""Where trained models come from: files, addresses, releases and the hub."""

import shutil
from pathlib import Path

import pytest

from elmo_tasks import TrainedTask
from elmo_tasks.files.json_files import file_digest
from elmo_tasks.vectors.trained_models import trained_model

TEXT = "It works."


@pytest.fixture
def release(archive, tmp_path, monkeypatch) -> Path:
    """The files of a release with the model `mood`."""
    monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ELMO_TASKS_RELEASE", f"file://{tmp_path}")
    shutil.copy(archive("sst"), tmp_path / "mood.tar.gz")
    (tmp_path / "SHA256SUMS").write_text(f"{file_digest(archive('sst'))}  mood.tar.gz\n")
    return tmp_path


def test_a_model_of_a_release_is_kept(release, archive):
    expected = TrainedTask(archive("sst"))(TEXT)
    assert TrainedTask("mood")(TEXT) == expected
    (release / "mood.tar.gz").unlink()
    assert TrainedTask("models/mood")(TEXT) == TrainedTask(f"file://{release}/mood.tar.gz")(TEXT) == expected


def test_a_changed_file_is_refused(release):
    with open(release / "mood.tar.gz", "ab") as file:
        file.write(b"x")
    with pytest.raises(ValueError, match="SHA-256"):
        trained_model("mood")


@pytest.mark.parametrize(("name", "named"), [("other", "mood.tar.gz"), ("no/such/folder", "ELMO_TASKS_RELEASE")])
def test_an_error_says_where_models_are(release, name, named):
    with pytest.raises(ValueError, match=f"{name}.*{named}"):
        trained_model(name)


def test_the_hub_has_folders_or_archives(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "snapshot_download", lambda name, revision, **_: str(tmp_path / f"{revision}"))
    (tmp_path / "v1").mkdir()
    assert trained_model("org/name@v1") == tmp_path / "v1" / "model.tar.gz"
    (tmp_path / "v1" / "config.json").touch()
    assert trained_model("org/name@v1") == tmp_path / "v1"


@pytest.mark.parametrize("from_folder", [False, True])
def test_a_saved_model_is_loaded(archive, tmp_path, from_folder):
    trained = TrainedTask(archive("sst").parent if from_folder else archive("sst"))
    trained.save(tmp_path / "mine")
    assert TrainedTask(tmp_path / "mine")(TEXT) == trained(TEXT)
    # Of a run, only the model.
    assert {"config.json", "weights.th"} <= {file.name for file in (tmp_path / "mine").iterdir()}
    assert not from_folder or len(list((tmp_path / "mine").iterdir())) == 4
    assert "# Sentiment" in (tmp_path / "mine" / "README.md").read_text()
