"""Where trained models come from: files, addresses, wheels and the hub."""

import shutil
import subprocess
import sys
import zipfile

import pytest

from elmo_tasks import TrainedTask, trained_models
from elmo_tasks.__main__ import main
from elmo_tasks.shipped import MODELS
from elmo_tasks.trained_models import trained_model

TEXT = "It works."


@pytest.fixture
def installed(archive, tmp_path, monkeypatch, capsys):
    """The folder of installed packages with the wheel of the model `mood`."""
    pytest.importorskip("setuptools")
    assert main(["package", str(archive("sst")), str(tmp_path), "--name", "mood", "--version", "1.2"]) == 0
    wheel = tmp_path / "elmo_tasks_mood-1.2-py3-none-any.whl"
    assert f"pip install {wheel}" in capsys.readouterr().out
    site = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel]
    subprocess.run(command, check=True)
    monkeypatch.syspath_prepend(site)
    return site


@pytest.mark.weekly
def test_a_wheel_of_a_model_is_found_by_its_name(installed, archive):
    assert TrainedTask("mood")(TEXT) == TrainedTask(archive("sst"))(TEXT)
    assert TrainedTask("mood").path == installed / "elmo_tasks_mood" and TrainedTask("mood").name == "mood"
    with pytest.raises(ValueError, match=r"did you mean mood\?.* mood \(installed\)"):
        trained_model("moood")
    metadata = (installed / "elmo_tasks_mood-1.2.dist-info" / "METADATA").read_text()
    assert "Requires-Dist: elmo_tasks[allennlp]>=" in metadata and "# Sentiment" in metadata


@pytest.mark.weekly
def test_a_wheel_has_the_card_and_the_licence(tmp_path):
    pytest.importorskip("setuptools")
    shutil.copytree(MODELS / "sst", tmp_path / "sst")
    assert main(["package", str(tmp_path / "sst"), str(tmp_path)]) == 0
    (path,) = tmp_path.glob("elmo_tasks_sst-*.whl")
    with zipfile.ZipFile(path) as wheel:
        files = {name.partition("/")[2] for name in wheel.namelist() if name.startswith("elmo_tasks_sst/")}
        assert {"README.md", "config.json", "weights.th", "vocabulary/tokens.txt"} <= files
        (metadata,) = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")]
    card = (MODELS / "sst" / "README.md").read_text()
    licence = card.partition("license: ")[2].partition("\n")[0]
    assert f"License: {licence}" in metadata and card.rpartition("\n# ")[2] in metadata


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        ("other", "", "other.*the names are coref"),
        ("nerr", "", "did you mean ner"),
        ("no/such/folder", "", "folder.*the names are"),
        ("ner", "", "package ner dist"),
        ("ner", "https://example.org/v1", "pip install https://example.org/v1/elmo_tasks_ner-"),
    ],
)
def test_an_error_says_what_to_type(name, release, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(trained_models, "MODELS", tmp_path)
    monkeypatch.setattr(trained_models, "RELEASE", release)
    with pytest.raises(ValueError, match=expected):
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
