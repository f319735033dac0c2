"""Tries files that attack at the doors of this package: trained tasks, spaCy pipelines and biLMs."""

import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import spacy
import srsly
from allennlp.common.checks import ConfigurationError
from spacy.language import Language

from allennlp_today import load_archive
from elmo_tasks import TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.files.archives import unpack
from tests.paths import CHECKOUT, TINY_BILM, bilm_files

TASKS = """
import json, sys
{start}
import spacy
from elmo_tasks.__main__ import main

def trained_task(path):
    from elmo_tasks import TrainedTask
    TrainedTask(path)

def component(path):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_task", config={{"model": path}})
    nlp("a b")

def annotate(path):
    assert main(["annotate", path, "text.txt", path + ".jsonl"]) == 0

doors = {{
    "TrainedTask": trained_task,
    "elmo_task": component,
    "annotate": annotate,
}}
report = {{}}
for path in {paths}:
    for name, door in doors.items():
        try:
            door(path)
            report[f"{{name}} {{path}}"] = "opened"
        except BaseException as error:
            report[f"{{name}} {{path}}"] = str(error) or "refused"
print(json.dumps(report))
"""
GUARDS = "load_archives_safely,open_files_of_the_archive_only,install_nothing"
STATES = {
    "normal": ({}, ""),
    "guards switched off": ({"ALLENNLP_TODAY_WITHOUT": GUARDS}, ""),
    "no extension of torch": ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, ""),
    "an error while installing": ({}, "sys.modules['allennlp_today.repairs.training'] = None; import torch"),
}

INDEXER = {
    "type": "elmo_transformer",
    "model_name": "org/name",
    "tokenizer_kwargs": {"trust_remote_code": True},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with models that attack."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "text.txt").write_text("a b\n")
    (tmp_path / "evil_module.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'outside' / 'ran')!r}).touch()\n"
    )
    config = json.loads((CHECKOUT / "models" / "ner" / "config.json").read_text())
    reader = config["dataset_reader"]
    attacks = {
        "link": config,
        "evil_class": {**config, "model": {"type": "evil_module.Evil"}},
        "arguments": {**config, "dataset_reader": {**reader, "token_indexers": {"x": INDEXER}}},
        # Nothing is built from it.
        "extra": {**config, "extra": INDEXER, "trainer": {"type": "evil_module.Evil"}},
    }
    for name, each in attacks.items():
        with tarfile.open(tmp_path / f"{name}.tar.gz", "w:gz") as tar:
            if name == "link":
                link = tarfile.TarInfo("vocabulary")
                link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "outside")
                tar.addfile(link)
            content = json.dumps(each).encode()
            info = tarfile.TarInfo("config.json")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
            for file in ("weights.th", "vocabulary"):
                tar.add(CHECKOUT / "models" / "ner" / file, file)
    return tmp_path


@pytest.mark.weekly
@pytest.mark.parametrize("state", STATES)
def test_a_trained_task_is_read_as_data(folder, state):
    variables, start = STATES[state]
    code = TASKS.format(
        start=start, paths=["ner", "link.tar.gz", "evil_class.tar.gz", "arguments.tar.gz", "extra.tar.gz"]
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env={**os.environ, **variables}
    )
    assert not list((folder / "outside").iterdir())
    assert process.returncode == 0, process.stderr[-3000:]
    report = json.loads(process.stdout.splitlines()[-1])
    opened = [name for name, answer in report.items() if answer == "opened"]
    good = [f"{door} {path}" for path in ("ner", "extra.tar.gz") for door in ("TrainedTask", "elmo_task", "annotate")]
    assert opened == ([] if "error" in state else good), report


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_bilm_with_links_is_refused(tmp_path, kind):
    options, weights = bilm_files(TINY_BILM)
    path = tmp_path / f"bilm.{kind}"
    if kind == "tar":
        with tarfile.open(path, "w") as tar:
            tar.add(options, options.name)
            link = tarfile.TarInfo(weights.name)
            link.type, link.linkname = tarfile.SYMTYPE, str(weights)
            tar.addfile(link)
    else:
        with zipfile.ZipFile(path, "w") as members:
            members.write(options, options.name)
            link_info = zipfile.ZipInfo(weights.name)
            link_info.external_attr = (stat.S_IFLNK | 0o777) << 16
            members.writestr(link_info, str(weights))
    with pytest.raises(ValueError, match=rf"files and folders only.*weights\.hdf5.*bilm\.{kind}"):
        unpack(path, tmp_path / "unpacked")


BILM = json.loads((CHECKOUT / "models" / "ner" / "config.json").read_text())["model"]["bilm"]
FULL_OPTIONS = BILM["options"]


def with_options(**lstm: object) -> dict[str, object]:
    return {"bilm": {**BILM, "options": {**FULL_OPTIONS, "lstm": {**FULL_OPTIONS["lstm"], **lstm}}}}


# The changed parts of the model of models/ner, and what the error names.
MODELS = {
    "biLM outside": ({"bilm": {**BILM, "included": "../../outside"}}, "included"),
    "biLM at an address": ({"bilm": {**BILM, "type": "transformer", "model_name": "http://x/y"}}, "model_name"),
    "many layers": (with_options(n_layers=10**9), "n_layers"),
    "large layers": (with_options(dim=10**12), "dim"),
    "words as sizes": (with_options(projection_dim="128"), "projection_dim"),
    "biLM of a class": ({"bilm": {"type": "evil_module.Evil"}}, "evil_module"),
    "encoder of a class": ({"encoders": [{"type": "evil_module.Evil"}]}, "evil_module"),
    "weights of the hub": ({"encoders": [{"type": "bart_encoder", "model_name": "org/name"}]}, "bart_encoder"),
    "argument of the embedder": (
        {"text_field_embedder": {"token_embedders": {"elmo": {"type": "elmo", "pretrained_folder": "outside"}}}},
        "pretrained_folder",
    ),
}


def attacking_model(folder: Path, changes: dict[str, object]) -> Path:
    """The files of models/ner with a different model in its config."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    config = json.loads((CHECKOUT / "models" / "ner" / "config.json").read_text())
    config["model"] |= changes
    (model / "config.json").write_text(json.dumps(config))
    for name in ("weights.th", "vocabulary"):
        (model / name).symlink_to(CHECKOUT / "models" / "ner" / name)
    return model


class TestConfigs:
    @pytest.mark.parametrize(("changes", "named"), MODELS.values(), ids=list(MODELS))
    def test_a_model_opens_nothing_outside(self, tmp_path, monkeypatch, changes, named):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigurationError, match=named) as error:
            TrainedTask(attacking_model(tmp_path, changes))
        assert "\n" not in str(error.value)
        assert not (tmp_path / "outside").exists()

    def test_the_cache_is_the_user_s(self, tmp_path, monkeypatch):
        """A limit of one byte would empty it."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
        of_a_config = {"cache_folder": "outside", "cache_max_bytes": 1, "cache_dtype": "float16"}
        path = attacking_model(tmp_path, {"bilm": {**BILM, **of_a_config}})
        TrainedTask(path)("It works.")
        assert (tmp_path / "cache").exists() and not (tmp_path / "outside").exists()
        assert not load_archive(path).config["model"]["bilm"].keys() & of_a_config.keys()
        archive = load_archive(path, overrides={"model.bilm.cache_folder": "mine"})
        assert archive.config["model"]["bilm"]["cache_folder"] == "mine"

    def test_each_door_refuses_it(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        path = attacking_model(tmp_path, {"bilm": {**BILM, "included": "../../outside"}})
        (tmp_path / "text.txt").write_text("a b\n")
        assert main(["annotate", str(path), "text.txt", "out.jsonl"]) == 1
        assert "../../outside" in capsys.readouterr().err
        assert main(["package", str(path), "."]) == 1
        monkeypatch.setenv("ELMO_TASKS_SERVE", str(path))
        serve = pytest.importorskip("elmo_tasks.serve")
        for door in (serve.make_app, lambda: load_archive(path), lambda: spacy_with(path)("a b")):
            with pytest.raises(ConfigurationError, match=r"\.\./\.\./outside"):
                door()
        assert not (tmp_path / "outside").exists()


def spacy_with(path: Path) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_task", config={"model": str(path)})
    return nlp


class TestSavedPipelines:
    """Somebody else has written the config: what it names is not fetched, and not copied to the cache."""

    @pytest.mark.parametrize("model", ["http://127.0.0.1:9/x", "file:///secret.txt", "org/name"])
    @pytest.mark.parametrize(("component", "key"), [("elmo_ner", "model"), ("elmo", "bilm")])
    def test_their_models_have_no_address(self, tmp_path, monkeypatch, component, key, model):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        nlp = spacy.blank("en")
        nlp.add_pipe(component, config={key: model, "save_weights": False})
        nlp.to_disk(tmp_path / "pipeline")
        loaded = spacy.load(tmp_path / "pipeline")
        with pytest.raises(ValueError, match="expected a name or a path"):
            loaded("a b")
        assert not (tmp_path / "home").exists()

    def test_an_archive_of_a_bilm_is_not_unpacked(self, tmp_path, monkeypatch):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)
        shutil.make_archive("bilm", "zip", TINY_BILM)
        for bilm in ("bilm.zip", str(tmp_path / "bilm.zip")):
            nlp = spacy.blank("en")
            nlp.add_pipe("elmo", config={"bilm": bilm, "save_weights": False})
            nlp.to_disk("pipeline")
            with pytest.raises(ValueError, match="expected a name or a path"):
                spacy.load("pipeline")("a b")
        assert not (tmp_path / "home").exists()

    @pytest.mark.parametrize("component", ["elmo_ner", "elmo"])
    def test_a_missing_folder_is_an_error(self, tmp_path, monkeypatch, component):
        monkeypatch.setenv("ELMO_TASKS_HOME", str(tmp_path / "home"))
        nlp = spacy.blank("en")
        nlp.add_pipe(component, config={"save_weights": False})
        nlp.to_disk(tmp_path / "pipeline")
        config = tmp_path / "pipeline" / "config.cfg"
        config.write_text(config.read_text().replace("save_weights = false", "save_weights = true"))
        with pytest.raises(ValueError, match="folder of a saved component"):
            spacy.load(tmp_path / "pipeline")


COMPONENTS = ["elmo", "elmo_ner", "elmo_srl", "elmo_coref", "elmo_sst", "elmo_pos", "elmo_task"]


class TestNamesInBytes:
    @pytest.mark.parametrize("outside", ["../outside.txt", "{tmp}/outside.txt", "a/../../outside.txt"])
    @pytest.mark.parametrize("component", COMPONENTS)
    def test_no_component_writes_outside_its_folder(self, tmp_path, monkeypatch, component, outside):
        (tmp_path / "files").mkdir()
        monkeypatch.setattr("elmo_tasks.spacy.pipeline.mkdtemp", lambda: str(tmp_path / "files" / "in"))
        (tmp_path / "files" / "in").mkdir()
        pipe = spacy.blank("en").create_pipe(component, config={"model": "mine"} if component == "elmo_task" else {})
        data = srsly.msgpack_dumps({outside.format(tmp=tmp_path): b"x"})
        with pytest.raises(ValueError, match="outside"):
            pipe.from_bytes(data)
        assert not list(tmp_path.rglob("outside.txt"))
