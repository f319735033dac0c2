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


def reader(**arguments: Any) -> dict[str, Any]:
    return {**CONFIG, "dataset_reader": {"type": "sequence_tagging", **arguments}}


def model(**arguments: Any) -> dict[str, Any]:
    return {**CONFIG, "model": {**MODEL, **arguments}}


def encoder(**arguments: Any) -> dict[str, Any]:
    return model(encoder=arguments)


def tokens(**arguments: Any) -> dict[str, Any]:
    return model(text_field_embedder={"token_embedders": {"tokens": arguments}})


def transformer(**arguments: Any) -> dict[str, Any]:
    return tokens(**{"type": "pretrained_transformer", "model_name": "org/name", **arguments})


def tokenizer(**arguments: Any) -> dict[str, Any]:
    return {
        **CONFIG,
        "dataset_reader": {"type": "text_classification_json", "tokenizer": {"type": "spacy", **arguments}},
    }


ADDRESS = "http://127.0.0.1:9/x.tar.gz"
PASSWORDS = "/etc/passwd"
NESTED: dict[str, Any] = {"type": "pass_through", "input_dim": 2}
for _ in range(300):
    NESTED = {"type": "compose", "encoders": [NESTED]}
SEQ2SEQ = {"type": "simple_seq2seq", "source_embedder": MODEL["text_field_embedder"], "encoder": MODEL["encoder"]}

# What is found by a class that may be built is refused by its arguments.
CONFIGS: dict[str, Any] = {
    "model_popen": {**CONFIG, "model": POPEN},
    "reader_popen": {**CONFIG, "dataset_reader": POPEN},
    "second_reader_popen": {**CONFIG, "validation_dataset_reader": POPEN},
    "class_of_the_folder": {**CONFIG, "model": {"type": "evil_module.Evil"}},
    "loader_of_the_folder": {**CONFIG, "data_loader": {"type": "evil_module.Evil"}},
    "loader_by_its_name": {**CONFIG, "validation_data_loader": "evil_module.Evil"},
    "evaluator_of_the_folder": {**CONFIG, "evaluation": {"batch_serializer": {"type": "evil_module.Evil"}}},
    "tokenizer": {**CONFIG, "dataset_reader": {"type": "sequence_tagging", "token_indexers": {"tokens": INDEXER}}},
    "jsonnet": "{dataset_reader: {type: importstr 'secret.txt'}, model: {type: importstr 'secret.txt'}}",
    "environment": "{dataset_reader: {type: std.extVar('SECRET')}, model: {type: std.extVar('SECRET')}}",
    # Classes that open, fetch or run what their arguments name.
    "command": {**CONFIG, "model": {**MODEL, "type": "constituency_parser", "evalb_directory_path": "x; touch y #"}},
    "program": {**CONFIG, "model": {**MODEL, "type": "srl", "srl_eval_path": "srl-eval.pl"}},
    "address_of_a_tar": {**CONFIG, "dataset_reader": {"type": "flickr30k", "image_dir": "x", "data_dir": ADDRESS}},
    "two_tars": {**CONFIG, "dataset_reader": {"type": "triviaqa", "base_tarball_path": ADDRESS}},
    "other_archive": {**CONFIG, "model": {"type": "from_archive", "archive_file": ADDRESS}},
    "module_of_an_archive": encoder(_pretrained={"archive_file": ADDRESS, "module_path": "encoder"}),
    "weights_of_the_hub": {**CONFIG, "model": {"type": "t5", "model_name": "org/name"}},
    "ensemble": {**CONFIG, "model": {"type": "bidaf-ensemble", "submodels": [ADDRESS]}},
    "weights_by_initializer": model(feedforward={"initializer": [["", {"type": "pretrained", "x": PASSWORDS}]]}),
    "module_that_downloads": {**CONFIG, "dataset_reader": {"type": "allennlp_models.rc.tools.narrativeqa.X"}},
    "quotation_marks": '{"a": "' + '\\"' * 20_000,
    # What the list allows, with other arguments.
    "installer": tokenizer(language="xx_missing_web_sm"),
    "pipeline_in_the_folder": tokenizer(language="remote"),
    "pipeline_at_an_address": tokenizer(language=ADDRESS),
    "transformer_at_an_address": transformer(model_name=ADDRESS),
    "transformer_in_the_folder": transformer(model_name="remote"),
    "transformer_above": transformer(model_name="../outside"),
    "weights_of_a_transformer": transformer(override_weights_file="secret.txt"),
    "cache_of_a_transformer": transformer(transformer_kwargs={"cache_dir": "outside"}),
    "kernels": transformer(transformer_kwargs={"attn_implementation": "org/kernels"}),
    "pickles": transformer(transformer_kwargs={"weights_only": False}),
    "code_of_a_transformer": transformer(tokenizer_kwargs={"trust_remote_code": True}),
    "file_of_a_tokenizer": transformer(tokenizer_kwargs={"tokenizer_file": PASSWORDS}),
    "arguments_in_arguments": transformer(tokenizer_kwargs={"pad_token": {"trust_remote_code": True}}),
    "embeddings_at_an_address": {**CONFIG, "model": {**SEQ2SEQ, "target_pretrain_file": ADDRESS}},
    "elmo_of_a_file": tokens(type="elmo_token_embedder", options_file="secret.txt", weight_file="secret.txt"),
    "elmo_at_an_address": tokens(type="elmo_token_embedder", options_file=ADDRESS, weight_file=ADDRESS),
    "data_of_the_loader": {**CONFIG, "data_loader": {"batch_size": 1, "data_path": PASSWORDS}},
    "reader_of_the_loader": {**CONFIG, "data_loader": {"batch_size": 1, "reader": {"type": "gqa", "image_dir": "/"}}},
    "method_of_the_model": {**CONFIG, "evaluation": {"postprocessor_fn_name": "load_state_dict"}},
    "folder_of_the_reader": reader(serialization_dir="outside"),
    "vocabulary_in_the_model": model(vocab={"type": "from_files", "directory": "outside"}),
    "vocabulary_of_a_class": {**CONFIG, "vocabulary": {"type": "evil_module.Evil"}},
    "embedder_of_a_class": tokens(type="evil_module.Evil"),
    "function_by_its_name": {
        **CONFIG,
        "model": {**SEQ2SEQ, "type": "copynet_seq2seq", "token_based_metric": {"type": "span_f1", "x": 1}},
    },
    "encoder_in_an_encoder": encoder(type="compose", encoders=[{"type": "bart_encoder", "model_name": "org/name"}]),
    "alternative": model(type="bcn", output_layer={"input_dim": 1, "activations": [{"type": "evil_module.Evil"}]}),
    "argument_of_python": encoder(type="pass_through", input_dim=2, self="x"),
    "argument_of_nothing": encoder(type="pass_through", input_dim=2, x="x"),
    "old_argument": {**CONFIG, "dataset_reader": {"type": "conll2003", "coding_scheme": PASSWORDS}},
    "name_in_a_list": encoder(type=["pass_through"], input_dim=2),
    "no_name": encoder(type=None, input_dim=2),
    "no_dictionary": {**CONFIG, "model": [MODEL]},
    "no_object": "[]",
    "nested": encoder(type="compose", encoders=[NESTED, {"type": "evil_module.Evil"}]),
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
            if not any(info.name == "vocabulary" for info, _ in more):
                tar.add(folder / "vocabulary", "vocabulary")

    outside = folder / "outside"
    write(folder / "good.tar.gz", GOOD)
    for name, config in CONFIGS.items():
        write(folder / "attacks" / f"{name}.tar.gz", config)
    write(folder / "attacks" / "weights.tar.gz", CONFIG, {**state, "evil": Evil()})
    inner = io.BytesIO()
    with tarfile.open(fileobj=inner, mode="w") as tar:
        for info, data in [*chain_of_links(outside), member("../../outside/vocabulary")]:
            tar.addfile(info, io.BytesIO(data))
    tars = {
        "vocabulary_in_a_tar": [member("vocabulary", inner.getvalue())],
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
import json, os, sys, tempfile
from pathlib import Path

# What runs, fetches or writes outside the temporary folder.
events = []
OURS = (tempfile.gettempdir(), "out.txt", "/dev/")

def watch(event, arguments):
    written = event == "open" and isinstance(arguments[0], str) and set(str(arguments[1])) & set("wax+")
    if written and not arguments[0].startswith(OURS) and "__pycache__" not in arguments[0]:
        events.append(f"write {arguments[0]}")
    if event in ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"):
        events.append(f"{event} {arguments}")

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
    # The tagger's own predictor needs spaCy's English model.
    Predictor.from_path(path, "text_classifier")


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
sys.addaudithook(watch)
for path in ["good.tar.gz", *sorted(map(str, Path("attacks").iterdir()))[: int(os.environ["N_ATTACKS"])]]:
    for name, door in doors.items():
        try:
            door(path)
            answer = "opened"
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        report[f"{name} {path}"] = answer
    if path in ("good.tar.gz", "attacks/root.tar.gz"):
        # They open, and the predictor, which the user names, looks for spaCy's English model.
        events.clear()
report["events"] = events
print(json.dumps(report))
"""
GUARDS = "load_archives_safely,open_files_of_the_archive_only,install_nothing,run_no_code_of_transformers"
STARTUP = "find_plugins_by_entry_points,settle_commands,import_submodules_quickly"

# Variables, and what the program begins with.
# Each takes fifteen seconds; the others run weekly, "normal" because "guards switched off" is stricter.
DAILY = ("guards switched off", "an error while installing")
STATES: dict[str, tuple[dict[str, str], str]] = {
    "normal": ({}, "import torch"),
    "guards switched off": ({"ALLENNLP_TODAY_WITHOUT": GUARDS}, "import torch"),
    "fixes of the start switched off": ({"ALLENNLP_TODAY_WITHOUT": STARTUP}, "import torch"),
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
    def test_each_is_refused_at_each_door(self, folder, tmp_path, state):
        variables, start = STATES[state]
        temporary = tmp_path / "temporary"
        temporary.mkdir()
        # Where AllenNLP cannot be imported, no archive is looked at.
        n_attacks = 5 if state in CLOSED else len(CONFIGS) + 9
        environment = {**os.environ, **variables, "SECRET": SECRET, "TMPDIR": str(temporary)}
        environment["N_ATTACKS"] = str(n_attacks)
        command = [sys.executable, "-c", f"{start}\n{PROGRAM}"]
        process = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
        assert process.returncode == 0, process.stderr[-3000:]
        report = json.loads(process.stdout.splitlines()[-1])
        assert not report.pop("events")
        attacks = {name: answer for name, answer in report.items() if "attacks/" in name}
        assert len(attacks) == 5 * n_attacks
        # `tarfile` removes the slash, so this file is written inside.
        assert not [name for name, answer in attacks.items() if answer == "opened" and "/root" not in name]
        assert not [name for name, answer in attacks.items() if SECRET in answer]
        assert SECRET not in process.stderr
        if state not in CLOSED:
            sentences = {name: answer for name, answer in attacks.items() if name.startswith("allennlp_today")}
            # tarfile's own, and Python's.
            others = ("/parent", "/nested", "/root")
            wrong = {n: a for n, a in sentences.items() if not ("expected" in a and "\n" not in a)}
            assert not [name for name in wrong if not any(other in name for other in others)], wrong
        assert not list((folder / "outside").iterdir())
        good = {name: answer for name, answer in report.items() if name not in attacks}
        if state in CLOSED:
            assert "opened" not in good.values()
        else:
            doors = ("load_archive", "from_path")
            assert [answer for name, answer in good.items() if any(d in name for d in doors)] == ["opened"] * 3, good
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
