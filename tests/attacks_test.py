"""Tries files that attack at the doors of this package: trained tasks, spaCy pipelines and biLMs."""

import io
import json
import os
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import spacy
import srsly

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
    assert main(["annotate", path, "text.txt", "out.jsonl"]) == 0

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
GUARDS = "load_archives_safely,read_configs_as_json,refuse_unregistered_types"
STATES = {
    "normal": ({}, ""),
    "guards switched off": ({"ELMO_TASKS_WITHOUT_FIXES": GUARDS, "ALLENNLP_TODAY_WITHOUT": GUARDS}, ""),
    "no extension of torch": ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, ""),
    "an error while installing": ({}, "sys.modules['allennlp_today.training'] = None; import torch"),
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
    attacks = {
        "link": config,
        "evil_class": {**config, "model": {"type": "evil_module.Evil"}},
        "arguments": {**config, "extra": {"tokenizer_kwargs": {"trust_remote_code": True}}},
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


# Each takes twenty seconds; the doors of AllenNLP are tried daily in the other states.
DAILY = ("normal", "an error while installing")


@pytest.mark.slow
@pytest.mark.parametrize(
    "state", [pytest.param(state, marks=[] if state in DAILY else [pytest.mark.weekly]) for state in STATES]
)
def test_a_trained_task_is_read_as_data(folder, state):
    variables, start = STATES[state]
    code = TASKS.format(start=start, paths=["ner", "link.tar.gz", "evil_class.tar.gz", "arguments.tar.gz"])
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env={**os.environ, **variables}
    )
    assert not list((folder / "outside").iterdir())
    assert process.returncode == 0, process.stderr[-3000:]
    report = json.loads(process.stdout.splitlines()[-1])
    opened = [name for name, answer in report.items() if answer == "opened"]
    assert opened == ([] if "error" in state else ["TrainedTask ner", "elmo_task ner", "annotate ner"]), report


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
