"""Tries archives that attack at each of AllenNLP's doors, in each state in which guards might be missing."""

import io
import json
import os
import pickle
import subprocess
import sys
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from allennlp.common import Params
from allennlp.common.cached_transformers import get_tokenizer
from allennlp.common.plugins import import_plugins
from allennlp.data import Vocabulary
from allennlp.models import Model

pytestmark = pytest.mark.slow

# What runs it writes a file; what reads prints this.
SECRET = "secret-of-the-user"
CODE = "from pathlib import Path\nPath(r'{}').touch()\n"
MODEL = {
    "type": "simple_tagger",
    "text_field_embedder": {"token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}},
    "encoder": {"type": "pass_through", "input_dim": 2},
}
CONFIG = {"dataset_reader": {"type": "sequence_tagging"}, "model": MODEL, "data_loader": {"batch_size": 1}}
INDEXER = {
    "type": "pretrained_transformer",
    "model_name": "remote",
    "tokenizer_kwargs": {"trust_remote_code": True},
}
# It leads to no code: the trainer is not built, and the arguments are harmless.
GOOD = {
    **CONFIG,
    "trainer": {"type": "my_project.Trainer"},
    "train_data_path": "data/train.txt",
    "a": {"tokenizer_kwargs": {"max_length": 9, "add_prefix_space": True, "pad_token": "x", "use_fast": False}},
    "b": [{"transformer_kwargs": {"output_attentions": True, "hidden_dropout_prob": 0.1}}],
}
POPEN = {"type": "subprocess.Popen", "args": ["touch", "outside/popen"]}

CONFIGS: dict[str, Any] = {
    "model_popen": {**CONFIG, "model": POPEN},
    "reader_popen": {**CONFIG, "dataset_reader": POPEN},
    "class_of_the_folder": {**CONFIG, "model": {"type": "evil_module.Evil"}},
    "loader_of_the_folder": {**CONFIG, "data_loader": {"type": "evil_module.Evil"}},
    "loader_by_its_name": {**CONFIG, "validation_data_loader": "evil_module.Evil"},
    "evaluator_of_the_folder": {**CONFIG, "evaluation": {"batch_serializer": {"type": "evil_module.Evil"}}},
    "tokenizer": {**CONFIG, "dataset_reader": {"type": "sequence_tagging", "token_indexers": {"tokens": INDEXER}}},
    "pickles": {**CONFIG, "extra": {"transformer_kwargs": {"weights_only": False}}},
    "kernels": {**CONFIG, "extra": {"model_kwargs": {"attn_implementation": "org/kernels"}}},
    "jsonnet": "{dataset_reader: {type: importstr 'secret.txt'}, model: {type: importstr 'secret.txt'}}",
    "environment": "{dataset_reader: {type: std.extVar('SECRET')}, model: {type: std.extVar('SECRET')}}",
}


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("outside/pickle"),)


def member(name: str, content: bytes = b"x", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content) if "linkname" not in fields else 0
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def chain_of_links(outside: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    """Passes the data filter of Python before June 2025: the path becomes too long to be resolved (CVE-2025-4517)."""
    members, path = [], ""
    for letter in "abcdefghijklmnop":
        folder = letter * 247
        members.append(member(f"{path}{folder}", b"", type=tarfile.DIRTYPE))
        members.append(member(f"{path}{letter}", type=tarfile.SYMTYPE, linkname=folder))
        path += f"{letter}/"
    long = f"{path}{'l' * 254}"
    members.append(member(long, type=tarfile.SYMTYPE, linkname="../" * 16))
    members.append(member("escape", type=tarfile.SYMTYPE, linkname=f"{long}/../../../../../../..{outside}"))
    return [*members, member("escape/chain")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a good archive, and archives that attack, in `attacks/`."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "outside").mkdir()
    (folder / "attacks").mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (folder / "evil_module.py").write_text(CODE.format(folder / "outside" / "import"))
    (folder / "remote").mkdir()
    (folder / "remote" / "evil.py").write_text(CODE.format(folder / "outside" / "tokenizer"))
    auto_map = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
    (folder / "remote" / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "Evil", **auto_map}))
    (folder / "remote" / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (folder / "texts.jsonl").write_text('{"sentence": "a b"}\n')
    import_plugins()
    vocabulary = Vocabulary()
    vocabulary.add_token_to_namespace("A", "labels")
    state = Model.from_params(Params(json.loads(json.dumps(MODEL))), vocab=vocabulary).state_dict()
    vocabulary.save_to_files(str(folder / "vocabulary"))

    def write(path: Path, config: Any, weights: Any = state, *more: tuple[tarfile.TarInfo, bytes]) -> None:
        content = io.BytesIO()
        torch.save(weights, content)
        text = config if isinstance(config, str) else json.dumps(config)
        with tarfile.open(path, "w:gz") as tar:
            for info, data in (*more, member("config.json", text.encode()), member("weights.th", content.getvalue())):
                tar.addfile(info, io.BytesIO(data))
            tar.add(folder / "vocabulary", "vocabulary")

    outside = folder / "outside"
    write(folder / "good.tar.gz", GOOD)
    for name, config in CONFIGS.items():
        write(folder / "attacks" / f"{name}.tar.gz", config)
    write(folder / "attacks" / "weights.tar.gz", CONFIG, {**state, "evil": Evil()})
    tars = {
        "parent": [member("../../outside/parent")],
        "root": [member(f"{outside}/root")],
        "link": [member("a", type=tarfile.SYMTYPE, linkname=str(outside)), member("a/link")],
        "hard_link": [member("vocabulary/a.txt", type=tarfile.LNKTYPE, linkname=str(folder / "secret.txt"))],
        "link_inside": [member("a", type=tarfile.SYMTYPE, linkname="config.json")],
        "pipe": [member("a", b"", type=tarfile.FIFOTYPE)],
        "chain": chain_of_links(outside),
    }
    for name, members in tars.items():
        write(folder / "attacks" / f"{name}.tar.gz", CONFIG, state, *members)
    return folder


PROGRAM = """
import json, sys
from pathlib import Path

def command(*arguments):
    from allennlp.commands import main
    sys.argv = ["allennlp", *map(str, arguments)]
    main()

def today(path):
    from allennlp_today import load_archive
    load_archive(path)

def allennlp(path):
    from allennlp.models import load_archive
    load_archive(path)

def predictor(path):
    from allennlp.predictors import Predictor
    Predictor.from_path(path, "sentence_tagger", extra_args={"language": "xx"})


doors = {
    "allennlp_today.load_archive": today,
    "allennlp.models.load_archive": allennlp,
    "Predictor.from_path": predictor,
    "allennlp predict": lambda path: command("predict", path, "texts.jsonl", "--output-file", "out.txt", "--silent"),
    "allennlp evaluate": lambda path: command("evaluate", path, "missing.txt"),
}
report = {}
try:
    from allennlp import commands
    from allennlp.common import plugins

    # They are imported once, which each door would try again.
    plugins.import_plugins()
    plugins.import_plugins = commands.import_plugins = lambda: None
except ImportError:
    pass
for path in ["good.tar.gz", *sorted(map(str, Path("attacks").iterdir()))]:
    for name, door in doors.items():
        try:
            door(path)
            answer = "opened"
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        report[f"{name} {path}"] = answer
print(json.dumps(report))
"""
GUARDS = "load_archives_safely,read_configs_as_json,refuse_unregistered_types,read_recovered_configs_as_json"
STARTUP = "find_plugins_by_entry_points,settle_commands,import_submodules_quickly"

# Variables, and what the program begins with.
# Each takes fifteen seconds; the others run weekly, "normal" because "guards switched off" is stricter.
DAILY = ("guards switched off", "no extension of torch", "an error while installing")
STATES: dict[str, tuple[dict[str, str], str]] = {
    "normal": ({}, "import torch"),
    "guards switched off": ({"ALLENNLP_TODAY_WITHOUT": GUARDS}, "import torch"),
    "fixes of the start switched off": ({"ALLENNLP_TODAY_WITHOUT": STARTUP}, "import torch"),
    "the old variable": ({"ELMO_TASKS_WITHOUT_FIXES": GUARDS}, "import torch"),
    "no extension of torch": ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "import allennlp_today"),
    "pickles allowed": ({"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}, "import torch"),
    "an error while installing": (
        {"PYTHONWARNINGS": "ignore"},
        "import sys; sys.modules['allennlp_today.training'] = None; import torch",
    ),
    "nothing installed": ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "import sys; sys.modules['allennlp_today'] = None"),
}
CLOSED = {"an error while installing", "nothing installed"}


class TestAttacks:
    @pytest.mark.parametrize(
        "state", [pytest.param(state, marks=[] if state in DAILY else [pytest.mark.weekly]) for state in STATES]
    )
    def test_each_is_refused_at_each_door(self, folder, state):
        variables, start = STATES[state]
        environment = {**os.environ, **variables, "SECRET": SECRET, "HF_HUB_OFFLINE": "1"}
        command = [sys.executable, "-c", f"{start}\n{PROGRAM}"]
        process = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert process.returncode == 0, process.stderr[-3000:]
        report = json.loads(process.stdout.splitlines()[-1])
        attacks = {name: answer for name, answer in report.items() if "attacks/" in name}
        assert len(attacks) == 5 * 19
        # `tarfile` removes the slash, so this file is written inside.
        assert not [name for name, answer in attacks.items() if answer == "opened" and "/root" not in name]
        assert not [name for name, answer in attacks.items() if SECRET in answer]
        assert SECRET not in process.stderr
        assert not list((folder / "outside").iterdir())
        good = {name: answer for name, answer in report.items() if name not in attacks}
        if state in CLOSED:
            assert "opened" not in good.values()
        else:
            # A tagger needs spaCy's English model for sentences.
            assert [answer for name, answer in good.items() if "load_archive" in name] == ["opened"] * 2, good
        if state == "an error while installing":
            assert "no archive is opened" in good["allennlp.models.load_archive good.tar.gz"]

    def test_the_attacks_are_real(self, folder, monkeypatch):
        """Without the guards, the pickle and the tokenizer run their code."""
        monkeypatch.chdir(folder)
        pickle.loads(pickle.dumps(Evil()))
        # Its code has no tokenizer.
        with suppress(Exception):
            get_tokenizer("remote", trust_remote_code=True)
        found = {path.name for path in (folder / "outside").iterdir()}
        for path in (folder / "outside").iterdir():
            path.unlink()
        assert found == {"pickle", "tokenizer"}
