"""
Tries files that attack at the entry points of this package: trained tasks, spaCy pipelines and
biLMs.
"""

import io
import json
import os
import re
import shutil
import stat
import tarfile
import zipfile
from functools import partial
from pathlib import Path

import pytest
import spacy
import srsly
from allennlp.common.checks import ConfigurationError
from spacy.lang.en import English
from spacy.language import Language
from thinc.api import Config

from allennlp_today import load_archive
from elmo_tasks import Elmo, TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.files.archives import unpack
from elmo_tasks.spacy.elmo_component import ElmoComponent
from tests.paths import CHECKOUT, TINY_BILM, bilm_files

INDEXER = {
    "type": "elmo_transformer",
    "model_name": "org/name",
    "tokenizer_kwargs": {"trust_remote_code": True},
}
MODEL = CHECKOUT / "models" / "ner"
NER = json.loads((MODEL / "config.json").read_text())
EVIL = {"type": "evil_module.Evil"}
EVIL_READER = {"type": "elmo_ner", "token_indexers": {"x": INDEXER}}
# A config with a part that attacks, and what the error names; and one of which nothing is built.
ARCHIVES = {
    "class": ({**NER, "model": EVIL}, "evil_module"),
    "arguments": ({**NER, "dataset_reader": EVIL_READER}, "trust_remote"),
    "link": (NER, "files and folders only"),
}
EXTRA = {**NER, "extra": INDEXER, "trainer": EVIL}


def archive_of(config: object, folder: Path, *, with_link: bool = False) -> Path:
    """The files of models/ner in an archive, with a different config."""
    path = folder / "model.tar.gz"
    content = json.dumps(config).encode()
    with tarfile.open(path, "w:gz") as tar:
        if with_link:
            tar.addfile(link_in_tar("vocabulary", folder))
        info = tarfile.TarInfo("config.json")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
        for file in ("weights.th", "vocabulary"):
            tar.add(MODEL / file, file)
    return path


def link_in_tar(name: str, target: Path) -> tarfile.TarInfo:
    link = tarfile.TarInfo(name)
    link.type = tarfile.SYMTYPE
    link.linkname = str(target)
    return link


def spacy_with(path: Path) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo_task", config={"model": str(path)})
    return nlp


def use_in_spacy(path: Path) -> None:
    nlp = spacy_with(path)
    nlp("a b")


def annotate(path: Path) -> None:
    """Runs the command, which prints an error in one line."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("ELMO_TASKS_DEBUG", "1")
        main(["annotate", str(path), "text.txt", "out.jsonl", "--force"])


ENTRY_POINTS = {"TrainedTask": TrainedTask, "elmo_task": use_in_spacy, "annotate": annotate}


class TestArchives:
    @pytest.fixture(autouse=True)
    def in_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "text.txt").write_text("a b\n")
        (tmp_path / "evil_module.py").write_text("raise AssertionError('this code ran')\n")

    @pytest.mark.parametrize("entry_point", ENTRY_POINTS)
    @pytest.mark.parametrize("name", ARCHIVES)
    def test_each_is_refused_at_each_entry_point(self, tmp_path, name, entry_point):
        config, named = ARCHIVES[name]
        path = archive_of(config, tmp_path, with_link=name == "link")
        with pytest.raises(ValueError, match=named):
            ENTRY_POINTS[entry_point](path)

    @pytest.mark.parametrize("entry_point", ENTRY_POINTS)
    def test_what_is_not_built_does_not_matter(self, tmp_path, entry_point):
        path = archive_of(EXTRA, tmp_path)
        ENTRY_POINTS[entry_point](path)


class TestArchivesOfBilms:
    ERROR = r"files and folders only.*weights\.hdf5.*"

    def test_a_tar_file_with_links_is_refused(self, tmp_path):
        options, weights = bilm_files(TINY_BILM)
        path = tmp_path / "bilm.tar"
        with tarfile.open(path, "w") as tar:
            tar.add(options, options.name)
            tar.addfile(link_in_tar(weights.name, weights))
        with pytest.raises(ValueError, match=rf"{self.ERROR}bilm\.tar"):
            unpack(path, tmp_path / "unpacked")

    def test_a_zip_file_with_links_is_refused(self, tmp_path):
        options, weights = bilm_files(TINY_BILM)
        path = tmp_path / "bilm.zip"
        with zipfile.ZipFile(path, "w") as members:
            members.write(options, options.name)
            link = zipfile.ZipInfo(weights.name)
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            members.writestr(link, str(weights))
        with pytest.raises(ValueError, match=rf"{self.ERROR}bilm\.zip"):
            unpack(path, tmp_path / "unpacked")


BILM = NER["model"]["bilm"]


def with_lstm(**changes: object) -> dict[str, object]:
    """A model with changed options of its biLM's LSTM."""
    options = BILM["options"]
    changed = {**options, "lstm": {**options["lstm"], **changes}}
    return {"bilm": {**BILM, "options": changed}}


EMBEDDER = {"type": "elmo", "pretrained_folder": "outside"}
# The changed parts of the model of models/ner, and what the error names.
MODELS = {
    "biLM outside": ({"bilm": {**BILM, "included": "../../outside"}}, "included"),
    "biLM at an address": (
        {"bilm": {**BILM, "type": "transformer", "model_name": "http://x/y"}},
        "model_name",
    ),
    "many layers": (with_lstm(n_layers=10**9), "n_layers"),
    "large layers": (with_lstm(dim=10**12), "dim"),
    "words as sizes": (with_lstm(projection_dim="128"), "projection_dim"),
    "biLM of a class": ({"bilm": EVIL}, "evil_module"),
    "encoder of a class": ({"encoders": [EVIL]}, "evil_module"),
    "weights of the hub": (
        {"encoders": [{"type": "bart_encoder", "model_name": "org/name"}]},
        "bart_encoder",
    ),
    "argument of the embedder": (
        {"text_field_embedder": {"token_embedders": {"elmo": EMBEDDER}}},
        "pretrained_folder",
    ),
}


def attacking_model(folder: Path, changes: dict[str, object]) -> Path:
    """The files of models/ner with a different model in its config."""
    model = folder / "model"
    model.mkdir(parents=True, exist_ok=True)
    config = {**NER, "model": {**NER["model"], **changes}}
    (model / "config.json").write_text(json.dumps(config))
    for name in ("weights.th", "vocabulary"):
        (model / name).symlink_to(MODEL / name)
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
        settings = {"cache_folder": "outside", "cache_max_bytes": 1, "cache_dtype": "float16"}
        path = attacking_model(tmp_path, {"bilm": {**BILM, **settings}})
        task = TrainedTask(path)
        task("It works.")
        assert (tmp_path / "cache").exists()
        assert not (tmp_path / "outside").exists()
        archive = load_archive(path)
        assert not archive.config["model"]["bilm"].keys() & settings.keys()
        archive = load_archive(path, overrides={"model.bilm.cache_folder": "mine"})
        assert archive.config["model"]["bilm"]["cache_folder"] == "mine"

    def test_each_entry_point_refuses_it(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        path = attacking_model(tmp_path, {"bilm": {**BILM, "included": "../../outside"}})
        (tmp_path / "text.txt").write_text("a b\n")
        assert main(["annotate", str(path), "text.txt", "out.jsonl"]) == 1
        assert "../../outside" in capsys.readouterr().err
        monkeypatch.setenv("ELMO_TASKS_SERVE", str(path))
        serve = pytest.importorskip("elmo_tasks.web.serve")
        for load in (serve.make_app, partial(load_archive, path), partial(use_in_spacy, path)):
            with pytest.raises(ConfigurationError, match=r"\.\./\.\./outside"):
                load()
        assert not (tmp_path / "outside").exists()


class TestSavedPipelines:
    """
    Somebody else has written the config: what it names is not fetched, and not copied to the cache.
    """

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

    @pytest.mark.parametrize("setting", ["trusted = true", 'packages = "evil_module"'])
    def test_they_trust_nothing(self, tmp_path, monkeypatch, setting):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "evil_module.py").write_text("raise AssertionError('this code ran')\n")
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo_ner", config={"save_weights": False})
        nlp.to_disk("pipeline")
        config = tmp_path / "pipeline" / "config.cfg"
        text = config.read_text()
        config.write_text(text.replace("save_weights", f"{setting}\nsave_weights"))
        with pytest.raises(ValueError, match="unexpected argument"):
            spacy.load("pipeline")

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


class TestPipesAndDevices:
    """They may have no end: a test that reads one does not end either."""

    @pytest.fixture
    def saved(self, tmp_path) -> Path:
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"bilm": str(TINY_BILM)})
        nlp.to_disk(tmp_path / "pipeline")
        return tmp_path / "pipeline"

    @pytest.mark.parametrize("name", ["options.json", "weights.hdf5"])
    @pytest.mark.parametrize("is_pipe", [True, False])
    def test_a_pipe_or_a_device_in_a_bilm_is_refused(self, saved, name, is_pipe):
        file = saved / "elmo" / name
        file.unlink()
        if is_pipe:
            os.mkfifo(file)
        else:
            file.symlink_to("/dev/zero")
        error = rf"regular file.*{re.escape(name)}"
        with pytest.raises(ValueError, match=error):
            spacy.load(saved)
        with pytest.raises(ValueError, match=error):
            Elmo.from_pretrained(saved / "elmo")

    def test_options_of_gigabytes_are_refused(self, saved):
        os.truncate(saved / "elmo" / "options.json", 2**40)
        with pytest.raises(ValueError, match=r"bytes of options.*options\.json"):
            spacy.load(saved)

    @pytest.mark.parametrize("path", ["pipe", "/dev/zero"])
    def test_a_pipe_or_a_device_as_a_model_is_refused(self, tmp_path, monkeypatch, path):
        monkeypatch.chdir(tmp_path)
        os.mkfifo("pipe")
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo_ner", config={"model": path, "save_weights": False})
        for read in (
            lambda: nlp("a b"),
            lambda: TrainedTask(path),
            lambda: Elmo.from_pretrained(path),
        ):
            with pytest.raises(ValueError, match=path):
                read()

    def test_a_damaged_name_is_an_error_with_the_file(self, saved):
        (saved / "elmo" / "name.json").write_bytes(b"\0")
        with pytest.raises(ValueError, match=r"name\.json"):
            spacy.load(saved)


class TestNamesOfTheUser:
    """
    Nothing is fetched for a name that only the config of a pipeline has, whatever its other files
    are.
    """

    @pytest.fixture(autouse=True)
    def hub(self, monkeypatch) -> list[str]:
        """The names that were looked for on the hub, which has a tiny biLM for each."""
        requested: list[str] = []

        def hub_folder(name: str, patterns: object) -> Path:
            requested.append(name)
            return TINY_BILM

        monkeypatch.setattr("elmo_tasks.vectors.pretrained.hub_folder", hub_folder)
        return requested

    def test_calls_of_the_user_name_models(self, hub, tmp_path):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"bilm": "org/first"})
        nlp("a b")
        spacy.blank("en").to_disk(tmp_path)
        loaded = spacy.load(tmp_path)
        loaded.add_pipe("elmo", config={"bilm": "org/second", "save_weights": False})
        loaded("a b")
        ElmoComponent(bilm="org/third")(loaded.make_doc("a b"))
        loaded.replace_pipe("elmo", "elmo", config={"bilm": "org/fourth"})
        loaded("a b")
        assert hub == ["org/first", "org/second", "org/third", "org/fourth"]

    def layer(self, **options: object) -> dict[str, object]:
        model = {"@architectures": "elmo_tasks.Elmo.v1", "bilm": str(TINY_BILM), **options}
        return {"model": model}

    def with_other_bilm(self, config: str) -> str:
        return config.replace(str(TINY_BILM), "org/name")

    def test_a_saved_layer_without_its_files_names_none(self, hub, tmp_path):
        nlp = spacy.blank("en")
        nlp.add_pipe("tok2vec", config=self.layer())
        nlp.initialize()
        nlp.to_disk(tmp_path)
        file = tmp_path / "tok2vec" / "model"
        content = srsly.msgpack_loads(file.read_bytes())
        content["shims"] = [[] for _ in content["shims"]]
        file.write_bytes(srsly.msgpack_dumps(content))
        config = tmp_path / "config.cfg"
        config.write_text(self.with_other_bilm(config.read_text()))
        loaded = spacy.load(tmp_path)
        with pytest.raises(ValueError, match="expected a name or a path"):
            loaded("a b")
        assert hub == []

    def test_a_config_and_bytes_name_none(self, hub):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"bilm": str(TINY_BILM), "save_weights": False})
        content = srsly.msgpack_loads(nlp.to_bytes())
        del content["elmo"]
        config = Config().from_str(self.with_other_bilm(nlp.config.to_str()))
        loaded = English.from_config(config)
        loaded.from_bytes(srsly.msgpack_dumps(content))
        with pytest.raises(ValueError, match="expected a name or a path"):
            loaded("a b")
        assert hub == []

    def test_a_training_uses_those_of_its_config(self, hub):
        nlp = spacy.blank("en")
        nlp.add_pipe("elmo", config={"bilm": str(TINY_BILM)})
        nlp.add_pipe("tok2vec", config=self.layer())
        config = Config().from_str(self.with_other_bilm(nlp.config.to_str()))
        trained = English.from_config(config)
        trained.initialize()
        trained("a b")
        assert hub == ["org/name", "org/name"]


class TestSavedModels:
    """
    A model of somebody else, which the user publishes again, brings no files of the user and no
    code.
    """

    @pytest.fixture
    def folder(self, tmp_path) -> Path:
        shutil.copytree(MODEL, tmp_path / "mine")
        (tmp_path / "secret.txt").write_text("secret")
        return tmp_path / "mine"

    @pytest.mark.parametrize("as_archive", [False, True])
    def test_only_the_model_is_copied(self, folder, as_archive, tmp_path):
        for name in ("modeling.py", "vocabulary/.py", ".env"):
            (folder / name).write_text("x = 1\n")
        path = folder
        if as_archive:
            path = tmp_path / "mine.tar.gz"
            with tarfile.open(path, "w:gz") as tar:
                for file in folder.iterdir():
                    tar.add(file, file.name)
        vocabulary = {f"vocabulary/{file.name}" for file in (folder / "vocabulary").glob("*.txt")}
        assert vocabulary
        expected = {"README.md", "config.json", "meta.json", "weights.th", *vocabulary}
        saved = tmp_path / "saved"
        task = TrainedTask(path)
        task.save(saved)
        assert {str(file.relative_to(saved)) for file in saved.rglob("*.*")} == expected
        component = spacy_with(path).get_pipe("elmo_task")
        names_in_bytes = set(srsly.msgpack_loads(component.to_bytes()))
        assert names_in_bytes == {"model/name.json"} | {f"model/{name}" for name in expected}

    @pytest.mark.parametrize("name", ["README.md", "vocabulary/my_tags.txt"])
    def test_targets_of_links_are_not_copied(self, folder, name, tmp_path):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(tmp_path / "secret.txt")
        error = rf"a link to .*secret\.txt.*{Path(name).name}"
        task = TrainedTask(folder)
        with pytest.raises(ValueError, match=error):
            task.save(tmp_path / "saved")
        nlp = spacy_with(folder)
        with pytest.raises(ValueError, match=error):
            nlp.to_bytes()
        assert not (tmp_path / "saved").exists()

    def test_a_model_in_the_cache_of_the_hub_has_links(self, folder, tmp_path):
        blobs = tmp_path / "models--org--name" / "blobs"
        snapshot = blobs.with_name("snapshots") / "0123"
        blobs.mkdir(parents=True)
        for number, file in enumerate([*folder.glob("*.*"), *folder.glob("vocabulary/*.txt")]):
            shutil.copy(file, blobs / str(number))
            link = snapshot / file.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(blobs / str(number))
        task = TrainedTask(snapshot)
        task.save(tmp_path / "saved")
        saved_config = (tmp_path / "saved" / "config.json").read_bytes()
        assert saved_config == (folder / "config.json").read_bytes()
        # A folder that only looks like one.
        blobs.rename(tmp_path / "outside")
        blobs.symlink_to(tmp_path / "outside")
        task = TrainedTask(snapshot)
        with pytest.raises(ValueError, match="a link to"):
            task.save(tmp_path / "again")


COMPONENTS = ["elmo", "elmo_ner", "elmo_srl", "elmo_coref", "elmo_sst", "elmo_pos", "elmo_task"]


class TestNamesInBytes:
    @pytest.mark.parametrize(
        "outside", ["../outside.txt", "{tmp}/outside.txt", "a/../../outside.txt"]
    )
    @pytest.mark.parametrize("component", COMPONENTS)
    def test_no_component_writes_outside_its_folder(
        self, tmp_path, monkeypatch, component, outside
    ):
        folder = tmp_path / "files" / "in"
        folder.mkdir(parents=True)
        monkeypatch.setattr("elmo_tasks.spacy.pipeline.mkdtemp", lambda: str(folder))
        config = {"model": "mine"} if component == "elmo_task" else {}
        pipe = spacy.blank("en").create_pipe(component, config=config)
        data = srsly.msgpack_dumps({outside.format(tmp=tmp_path): b"x"})
        with pytest.raises(ValueError, match="outside"):
            pipe.from_bytes(data)
        assert not list(tmp_path.rglob("outside.txt"))


@pytest.mark.parametrize("description", ["|O", [["a", "|O"]]])
def test_bytes_have_no_python_objects(description):
    """Each would be an address in memory."""
    is_record = isinstance(description, list)
    array = {b"nd": True, b"type": description, b"kind": b"V" if is_record else b""}
    array |= {b"shape": [1], b"data": b"A" * 8}
    component = spacy.blank("en").create_pipe("elmo_ner")
    with pytest.raises(ValueError, match="OBJECT array"):
        component.from_bytes(srsly.msgpack_dumps({"model/weights.th": array}))
