"""Where trained models come from: files, addresses and the hub."""

import ast
import contextlib
import io
import json
import re

import pytest

from elmo_tasks import TrainedTask
from elmo_tasks.predictors import trained_models
from elmo_tasks.predictors.trained_models import path_of_trained_model
from tests.paths import CHECKOUT
from tests.results import approximately

TEXT = "It works."
TASKS = ["coref", "ner", "pos", "snli", "squad", "srl", "sst"]
# Code, and what it prints as JSON.
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```json\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        ("other", "", "other.*the names are coref"),
        ("nerr", "", "did you mean ner"),
        ("no/such/folder", "", "folder.*the names are"),
        ("ner", "", "a checkout has it in models/ner"),
        ("ner", "https://example.org/v1", r"download https://example\.org/v1/ner\.tar\.gz,"),
    ],
)
def test_an_error_says_what_to_type(name, release, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(trained_models, "MODELS", tmp_path)
    monkeypatch.setattr(trained_models, "RELEASE", release)
    with pytest.raises(ValueError, match=expected):
        path_of_trained_model(name)


def test_the_hub_has_folders_or_archives(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(
        hub, "snapshot_download", lambda name, revision, **_: str(tmp_path / f"{revision}")
    )
    (tmp_path / "v1").mkdir()
    assert path_of_trained_model("org/name@v1") == tmp_path / "v1" / "model.tar.gz"
    (tmp_path / "v1" / "config.json").touch()
    assert path_of_trained_model("org/name@v1") == tmp_path / "v1"


@pytest.mark.parametrize("from_folder", [False, True])
def test_a_saved_model_is_loaded(archive, tmp_path, from_folder):
    trained = TrainedTask(archive("sst").parent if from_folder else archive("sst"))
    trained.save(tmp_path / "mine")
    assert TrainedTask(tmp_path / "mine")(TEXT) == trained(TEXT)
    # Of a run, only the model.
    assert {"config.json", "weights.th"} <= {file.name for file in (tmp_path / "mine").iterdir()}
    assert not from_folder or len(list((tmp_path / "mine").iterdir())) == 4
    assert "# Sentiment" in (tmp_path / "mine" / "README.md").read_text()


@pytest.mark.parametrize("task", TASKS)
def test_an_included_model_gives_the_result_of_its_card(task):
    card = CHECKOUT / "models" / task / "README.md"
    code, result = EXAMPLE.search(card.read_text(encoding="utf-8")).groups()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    # Keys of JSON are strings.
    answer = json.loads(json.dumps(ast.literal_eval(printed.getvalue())))
    assert answer == approximately(json.loads(result))
