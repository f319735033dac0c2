"""
Archives that attack, at each of AllenNLP's entry points, in this process. An audit hook sees what
they run, fetch or write.
"""

import io
import json
import os
import pickle
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from allennlp import commands
from allennlp.common import Params
from allennlp.common.cached_transformers import get_tokenizer
from allennlp.common.plugins import import_plugins
from allennlp.data import Vocabulary
from allennlp.models import Model, archival
from allennlp.predictors import Predictor

import allennlp_today

# What runs it writes a file; what reads prints this.
SECRET = "secret-of-the-user"
CODE = "from pathlib import Path\nPath(r'{}').touch()\n"
MODEL = {
    "type": "simple_tagger",
    "text_field_embedder": {
        "token_embedders": {"tokens": {"type": "embedding", "embedding_dim": 2}}
    },
    "encoder": {"type": "pass_through", "input_dim": 2},
}
CONFIG = {
    "dataset_reader": {"type": "sequence_tagging"},
    "model": MODEL,
    "data_loader": {"batch_size": 1},
}
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
    "a": {
        "tokenizer_kwargs": {
            "max_length": 9,
            "add_prefix_space": True,
            "pad_token": "x",
            "use_fast": False,
        }
    },
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
        "dataset_reader": {
            "type": "text_classification_json",
            "tokenizer": {"type": "spacy", **arguments},
        },
    }


ADDRESS = "http://127.0.0.1:9/x.tar.gz"
PASSWORDS = "/etc/passwd"
NESTED: dict[str, Any] = {"type": "pass_through", "input_dim": 2}
for _ in range(300):
    NESTED = {"type": "compose", "encoders": [NESTED]}
SEQ2SEQ = {
    "type": "simple_seq2seq",
    "source_embedder": MODEL["text_field_embedder"],
    "encoder": MODEL["encoder"],
}

# What is found by a class that may be built is refused by its arguments.
CONFIGS: dict[str, Any] = {
    "model_popen": {**CONFIG, "model": POPEN},
    "reader_popen": {**CONFIG, "dataset_reader": POPEN},
    "second_reader_popen": {**CONFIG, "validation_dataset_reader": POPEN},
    "class_of_the_folder": {**CONFIG, "model": {"type": "evil_module.Evil"}},
    "loader_of_the_folder": {**CONFIG, "data_loader": {"type": "evil_module.Evil"}},
    "loader_by_its_name": {**CONFIG, "validation_data_loader": "evil_module.Evil"},
    "evaluator_of_the_folder": {
        **CONFIG,
        "evaluation": {"batch_serializer": {"type": "evil_module.Evil"}},
    },
    "tokenizer": {
        **CONFIG,
        "dataset_reader": {"type": "sequence_tagging", "token_indexers": {"tokens": INDEXER}},
    },
    "jsonnet": "{dataset_reader: {type: importstr 'secret.txt'}, model: {type: importstr 'secret.txt'}}",
    "environment": "{dataset_reader: {type: std.extVar('SECRET')}, model: {type: std.extVar('SECRET')}}",
    # Classes that open, fetch or run what their arguments name.
    "command": {
        **CONFIG,
        "model": {**MODEL, "type": "constituency_parser", "evalb_directory_path": "x; touch y #"},
    },
    "program": {**CONFIG, "model": {**MODEL, "type": "srl", "srl_eval_path": "srl-eval.pl"}},
    "address_of_a_tar": {
        **CONFIG,
        "dataset_reader": {"type": "flickr30k", "image_dir": "x", "data_dir": ADDRESS},
    },
    "two_tars": {**CONFIG, "dataset_reader": {"type": "triviaqa", "base_tarball_path": ADDRESS}},
    "other_archive": {**CONFIG, "model": {"type": "from_archive", "archive_file": ADDRESS}},
    "module_of_an_archive": encoder(
        _pretrained={"archive_file": ADDRESS, "module_path": "encoder"}
    ),
    "weights_of_the_hub": {**CONFIG, "model": {"type": "t5", "model_name": "org/name"}},
    "ensemble": {**CONFIG, "model": {"type": "bidaf-ensemble", "submodels": [ADDRESS]}},
    "weights_by_initializer": model(
        feedforward={"initializer": [["", {"type": "pretrained", "x": PASSWORDS}]]}
    ),
    "module_that_downloads": {
        **CONFIG,
        "dataset_reader": {"type": "allennlp_models.rc.tools.narrativeqa.X"},
    },
    "long_config": " " * (2**24 + 1),
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
    "arguments_in_arguments": transformer(
        tokenizer_kwargs={"pad_token": {"trust_remote_code": True}}
    ),
    "embeddings_at_an_address": {**CONFIG, "model": {**SEQ2SEQ, "target_pretrain_file": ADDRESS}},
    "elmo_of_a_file": tokens(
        type="elmo_token_embedder", options_file="secret.txt", weight_file="secret.txt"
    ),
    "elmo_at_an_address": tokens(
        type="elmo_token_embedder", options_file=ADDRESS, weight_file=ADDRESS
    ),
    "data_of_the_loader": {**CONFIG, "data_loader": {"batch_size": 1, "data_path": PASSWORDS}},
    "reader_of_the_loader": {
        **CONFIG,
        "data_loader": {"batch_size": 1, "reader": {"type": "gqa", "image_dir": "/"}},
    },
    "method_of_the_model": {**CONFIG, "evaluation": {"postprocessor_fn_name": "load_state_dict"}},
    "folder_of_the_reader": reader(serialization_dir="outside"),
    "vocabulary_in_the_model": model(vocab={"type": "from_files", "directory": "outside"}),
    "vocabulary_of_a_class": {**CONFIG, "vocabulary": {"type": "evil_module.Evil"}},
    "embedder_of_a_class": tokens(type="evil_module.Evil"),
    "function_by_its_name": {
        **CONFIG,
        "model": {
            **SEQ2SEQ,
            "type": "copynet_seq2seq",
            "token_based_metric": {"type": "span_f1", "x": 1},
        },
    },
    "encoder_in_an_encoder": encoder(
        type="compose", encoders=[{"type": "bart_encoder", "model_name": "org/name"}]
    ),
    "alternative": model(
        type="bcn", output_layer={"input_dim": 1, "activations": [{"type": "evil_module.Evil"}]}
    ),
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


# Each has these values besides the tensors of the model.
WEIGHTS: dict[str, Any] = {
    "code_in_weights": {"evil": Evil()},
    "array_in_weights": {"evil": numpy.zeros(1)},
    "type_in_weights": {"evil": numpy.dtype("f8")},
    "number_in_weights": {"evil": numpy.float64(1.0)},
    "dictionary_in_weights": {"evil": {"weight": torch.zeros(1)}},
    "sparse_weights": {"evil": torch.zeros(1, 1).to_sparse()},
    "numbered_weights": {1: torch.zeros(1)},
}


def member(name: str, content: bytes = b"x", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content) if "linkname" not in fields else 0
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def chain_of_links(outside: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    """
    Passes the data filter of Python before June 2025: the path becomes too long to be resolved
    (CVE-2025-4517).
    """
    members, path = [], ""
    for letter in "abcdefghijklmnop":
        folder = letter * 247
        members.append(member(f"{path}{folder}", b"", type=tarfile.DIRTYPE))
        members.append(member(f"{path}{letter}", type=tarfile.SYMTYPE, linkname=folder))
        path += f"{letter}/"
    long = f"{path}{'l' * 254}"
    members.append(member(long, type=tarfile.SYMTYPE, linkname="../" * 16))
    members.append(
        member("escape", type=tarfile.SYMTYPE, linkname=f"{long}/../../../../../../..{outside}")
    )
    return [*members, member("escape/chain")]


def tar_in_a_file(outside: Path) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for info, data in [*chain_of_links(outside), member("../../outside/vocabulary")]:
            tar.addfile(info, io.BytesIO(data))
    return content.getvalue()


Members = list[tuple[tarfile.TarInfo, bytes]]
PAX_BACKWARDS = {"size": "-1024"}
PAX_SPARSE = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(2**40)}


def members_that_attack(outside: Path) -> dict[str, Members]:
    """Each tar file has these members before the others, which lead to the folder `outside`."""
    secret = str(outside.with_name("secret.txt"))
    link_to_outside = member("a", type=tarfile.SYMTYPE, linkname=str(outside))
    hard_link = member("vocabulary/a.txt", type=tarfile.LNKTYPE, linkname=secret)
    return {
        "vocabulary_in_a_tar": [member("vocabulary", tar_in_a_file(outside))],
        "root": [member(str(outside / "root"))],
        "parent": [member("../../outside/parent")],
        "link": [link_to_outside, member("a/link")],
        "hard_link": [hard_link],
        "link_inside": [member("a", type=tarfile.SYMTYPE, linkname="config.json")],
        "pipe": [member("a", b"", type=tarfile.FIFOTYPE)],
        "chain": chain_of_links(outside),
        "backwards": [member("a", pax_headers=PAX_BACKWARDS)],
        "sparse": [member("config.json", b"1\n0\n512\n", pax_headers=PAX_SPARSE)],
        "old_sparse": [member("a", b"", type=tarfile.GNUTYPE_SPARSE)],
        "long_header": [member("a", pax_headers={"comment": "x" * 2**21})],
    }


def zip_with_a_link(archive: Path, target: Path) -> None:
    """A zip file with the files of an archive, of which one is a link to `target`."""
    with tarfile.open(archive) as tar, zipfile.ZipFile(target, "w") as members:
        for info in tar.getmembers():
            content = tar.extractfile(info)
            if content is not None and info.name != "vocabulary/labels.txt":
                members.writestr(info.name, content.read())
        link = zipfile.ZipInfo("vocabulary/labels.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        members.writestr(link, str(archive.with_name("secret.txt")))


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def link_to(name: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(path.parents[3] / name)


# Each is a folder with a changed file.
FOLDERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "pipe_as_config": ("config.json", fifo),
    "endless_config": ("config.json", endless),
    "pipe_as_weights": ("weights.th", fifo),
    "endless_weights": ("weights.th", endless),
    "pipe_as_words": ("vocabulary/labels.txt", fifo),
    "endless_words": ("vocabulary/labels.txt", endless),
    "lock_elsewhere": ("vocabulary/.lock", link_to("secret.txt")),
    "endless_version": ("meta.json", lambda path: path.symlink_to("/dev/zero")),
}
OTHERS = ("pipe_as_archive", "endless_archive", "zip_with_a_link")
NAMES = sorted([*CONFIGS, *WEIGHTS, *members_that_attack(Path("outside")), *FOLDERS, *OTHERS])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with a good archive, and archives that attack, in `attacks/`."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("outside", "attacks", "temporary", "remote"):
        (folder / name).mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (folder / "evil_module.py").write_text(CODE.format(folder / "outside" / "import"))
    (folder / "remote" / "evil.py").write_text(CODE.format(folder / "outside" / "tokenizer"))
    auto_map = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
    (folder / "remote" / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Evil", **auto_map})
    )
    (folder / "remote" / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (folder / "texts.jsonl").write_text('{"sentence": "a b"}\n')
    import_plugins()
    write_archives(folder)
    return folder


def write_archives(folder: Path) -> None:
    vocabulary = Vocabulary()
    vocabulary.add_token_to_namespace("A", "labels")
    state = Model.from_params(Params(json.loads(json.dumps(MODEL))), vocab=vocabulary).state_dict()
    vocabulary.save_to_files(str(folder / "vocabulary"))
    (folder / "vocabulary" / ".lock").unlink(missing_ok=True)

    def write(path: Path, config: Any, weights: Any = state, members: Members = ()) -> None:
        content = io.BytesIO()
        torch.save(weights, content)
        text = config if isinstance(config, str) else json.dumps(config)
        files = [
            *members,
            member("config.json", text.encode()),
            member("weights.th", content.getvalue()),
        ]
        with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
            for info, data in files:
                tar.addfile(info, io.BytesIO(data))
            if not any(info.name == "vocabulary" for info, _ in members):
                tar.add(folder / "vocabulary", "vocabulary")

    attacks = folder / "attacks"
    write(folder / "good.tar.gz", GOOD)
    for name, config in CONFIGS.items():
        write(attacks / name, config)
    for name, values in WEIGHTS.items():
        write(attacks / name, CONFIG, {**state, **values})
    for name, members in members_that_attack(folder / "outside").items():
        write(attacks / name, CONFIG, members=members)
    zip_with_a_link(folder / "good.tar.gz", attacks / "zip_with_a_link")
    for name, (file, change) in FOLDERS.items():
        with tarfile.open(folder / "good.tar.gz") as tar:
            tar.extractall(attacks / name, filter="data")
        change(attacks / name / file)
    os.mkfifo(attacks / "pipe_as_archive")
    (attacks / "endless_archive").symlink_to("/dev/zero")


COMMANDS_AND_CONNECTIONS = {
    "os.exec",
    "os.system",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
}
# What runs, fetches or writes outside the temporary folder, while `watched` is not None.
watched: list[str] | None = None


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if watched is None:
        return
    if event == "open" and isinstance(arguments[0], str):
        path, mode, _ = arguments
        is_written = not set("wax+").isdisjoint(str(mode))
        is_expected = path.startswith((tempfile.gettempdir(), "out.txt", "/dev/null"))
        if is_written and not is_expected and "__pycache__" not in path:
            watched.append(f"write {path}")
    if event in COMMANDS_AND_CONNECTIONS:
        watched.append(f"{event} {arguments}")


sys.addaudithook(watch)


@pytest.fixture
def events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """In the working folder: what was run, fetched or written outside a temporary folder."""
    global watched
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    # They are imported once, which each command would try again.
    monkeypatch.setattr(commands, "import_plugins", lambda: None)
    signal.signal(signal.SIGALRM, out_of_time)
    signal.alarm(60)
    watched = seen = []
    yield seen
    watched = None
    signal.alarm(0)


def out_of_time(*_: object) -> None:
    raise AssertionError("an archive that is read for ever")


def run(*arguments: str) -> None:
    sys.argv = ["allennlp", *arguments]
    commands.main()


# The tagger's own predictor needs spaCy's English model.
def read_by_predictor(path: str) -> object:
    return Predictor.from_path(path, "text_classifier")


def predict(path: str) -> None:
    run("predict", path, "texts.jsonl", "--output-file", "out.txt", "--silent")


def evaluate(path: str) -> None:
    run("evaluate", path, "missing.txt")


ENTRY_POINTS: dict[str, Callable[[str], object]] = {
    "allennlp_today.load_archive": allennlp_today.load_archive,
    "allennlp.models.load_archive": archival.load_archive,
    "Predictor.from_path": read_by_predictor,
    "predict": predict,
    "evaluate": evaluate,
}


class TestAttacks:
    @pytest.mark.parametrize("name", NAMES)
    def test_each_is_refused_at_each_entry_point(
        self, folder, events, name, monkeypatch, logging_as_before, capfd
    ):
        monkeypatch.setattr(sys, "argv", [])
        path = f"attacks/{name}"
        for entry_point, open_archive in ENTRY_POINTS.items():
            with pytest.raises(Exception) as caught:
                open_archive(path)
            message = str(caught.value)
            is_message = not isinstance(caught.value, AssertionError) or "expected" in message
            assert is_message, entry_point
            assert "\n" not in message and name in message, entry_point
            assert SECRET not in message
        assert not events
        assert not list((folder / "outside").iterdir())
        assert not list((folder / "temporary").iterdir())
        assert (folder / "secret.txt").read_text() == SECRET
        assert "evil_module" not in sys.modules
        assert SECRET not in "".join(capfd.readouterr())

    def test_a_good_archive_is_opened(self, folder, events):
        for load_archive in (allennlp_today.load_archive, archival.load_archive):
            load_archive("good.tar.gz")
        assert not events and not list((folder / "outside").iterdir())

    @pytest.mark.parametrize("name", ["code_in_weights", "array_in_weights", "type_in_weights"])
    def test_what_a_process_allows_does_not_matter(self, folder, events, monkeypatch, name):
        """
        A variable allows all pickles, and programs may add to torch's list of what they may build.
        """
        monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        array, _, _ = numpy.zeros(1).__reduce__()
        allowed = [
            Path.touch,
            type(Path()),
            array,
            numpy.ndarray,
            numpy.dtype,
            type(numpy.dtype("f8")),
        ]
        with torch.serialization.safe_globals(allowed):
            with pytest.raises(ValueError, match="expected tensors"):
                allennlp_today.load_archive(f"attacks/{name}")
        assert not list((folder / "outside").iterdir())

    def test_the_attacks_are_real(self, folder, monkeypatch):
        """Without the guards, the pickle and the tokenizer run their code."""
        monkeypatch.chdir(folder)
        pickle.loads(pickle.dumps(Evil()))
        # Its code has no tokenizer.
        with suppress(Exception):
            get_tokenizer("remote", trust_remote_code=True)
        ran = {path.name for path in (folder / "outside").iterdir()}
        for path in (folder / "outside").iterdir():
            path.unlink()
        assert ran == {"pickle", "tokenizer"}


# Variables, and what a program begins with, where AllenNLP cannot be imported or opens nothing.
CLOSED: dict[str, tuple[dict[str, str], str]] = {
    "an error while installing": (
        {"PYTHONWARNINGS": "ignore"},
        "import sys; sys.modules['allennlp_today.repairs.training'] = None; import torch",
    ),
    "nothing installed": (
        {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        "import sys; sys.modules['allennlp_today'] = None",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("state", CLOSED)
def test_without_the_guards_no_archive_is_opened(folder, state):
    variables, start = CLOSED[state]
    program = f"{start}\nfrom allennlp.models import load_archive\nload_archive('good.tar.gz')"
    process = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **variables},
    )
    assert process.returncode == 1
    assert "ImportError" in process.stderr or "ModuleNotFoundError" in process.stderr
    assert state == "nothing installed" or "no archive is opened" in process.stderr
