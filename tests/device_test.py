"""The word `device` at every entry point: one name, one default and one error."""

import pickle
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import spacy
import torch

from elmo_tasks import Elmo, TrainedTask
from elmo_tasks.__main__ import main
from elmo_tasks.corpora.annotate import annotate_file
from elmo_tasks.corpora.embed import EmbedOptions
from elmo_tasks.paper.perplexity import LanguageModel
from elmo_tasks.predictors.pos_tagger import PosTagger
from elmo_tasks.spacy.elmo_component import ElmoComponent
from elmo_tasks.spacy.pipeline import device_in_spacy
from elmo_tasks.spacy.task_components import TaskComponent
from elmo_tasks.vectors.devices import device_of
from elmo_tasks.vectors.sklearn_vectorizer import ElmoVectorizer
from tests.devices import ON_CUDA
from tests.paths import FIXTURES, TINY_BILM
from tests.vectors.options_test import defaults

TEXT = "Ann met Bob in Rome . He was tired ."


@dataclass(frozen=True)
class Files:
    """What the entry points read and write, as they take it."""

    folder: Path
    # An archive of a model for names.
    model: str

    @property
    def text(self) -> str:
        return str(self.folder / "text.txt")

    def output(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture
def files(tmp_path: Path, archive: Callable[..., Path]) -> Files:
    (tmp_path / "text.txt").write_text(f"{TEXT}\n")
    return Files(tmp_path, str(archive("ner", "both", 3)))


class EntryPoints:
    """Each method computes something on a device; a command returns its exit status."""

    def __init__(
        self, files: Files, command: Callable[..., None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.files = files
        self.command = command
        self.monkeypatch = monkeypatch

    def elmo(self, device: str) -> None:
        Elmo.from_pretrained(TINY_BILM, device=device).embed([TEXT])

    def vectorizer(self, device: str) -> None:
        ElmoVectorizer(TINY_BILM, device=device).fit_transform([TEXT])

    def trained_task(self, device: str) -> None:
        TrainedTask(self.files.model, device=device)(TEXT)

    def embed(self, device: str) -> int:
        output = self.files.output("out.h5")
        bilm = str(TINY_BILM)
        return main(["embed", self.files.text, output, "--bilm", bilm, "--device", device])

    def annotate(self, device: str) -> int:
        output = self.files.output("out.jsonl")
        model = self.files.model
        return main(["annotate", model, self.files.text, output, "--device", device])

    def spacy_vectors(self, device: str) -> None:
        run_in_spacy("elmo", bilm=str(TINY_BILM), device=device)

    def spacy_names(self, device: str) -> None:
        run_in_spacy("elmo_ner", model=self.files.model, device=device)

    def spacy_task(self, device: str) -> None:
        run_in_spacy("elmo_task", model=self.files.model, device=device)

    def service(self, device: str) -> None:
        pytest.importorskip("fastapi_offline")
        from elmo_tasks.web.serve import make_app

        self.monkeypatch.setenv("ELMO_TASKS_SERVE", shlex.quote(self.files.model))
        self.monkeypatch.setenv("ELMO_TASKS_SERVE_DEVICE", device)
        make_app()

    def neighbors(self, device: str) -> None:
        index = self.files.output("index")
        options = ["--bilm", TINY_BILM, "--device", device]
        self.command("elmo-neighbors", "index", self.files.text, index, *options)

    def perplexity(self, device: str) -> None:
        self.command("elmo-perplexity", TINY_BILM, self.files.text, "--device", device)

    def word_senses(self, device: str) -> None:
        data = FIXTURES / "wsd"
        self.command("elmo-wsd", "--data", data, "--bilm", TINY_BILM, "--device", device)

    def demo(self, device: str) -> None:
        pytest.importorskip("gradio")
        self.command("elmo-demo", self.files.model, "--device", device)


@pytest.fixture
def entry_points(
    files: Files, command: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> EntryPoints:
    return EntryPoints(files, command, monkeypatch)


def run_in_spacy(component: str, **config: str) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe(component, config=config)
    nlp(TEXT)


COMMANDS = ["embed", "annotate"]
QUICK = [
    "elmo",
    "vectorizer",
    "trained_task",
    "spacy_vectors",
    "spacy_names",
    "spacy_task",
    "service",
    "neighbors",
]


@pytest.mark.parametrize("device", ["cpu", ON_CUDA])
@pytest.mark.parametrize("name", [*QUICK, *COMMANDS])
def test_an_entry_point_computes_on_the_given_device(entry_points, name, device):
    """Memory of a GPU is used if and only if it was asked for."""
    has_gpu = torch.cuda.is_available()
    if has_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    status = getattr(entry_points, name)(device)
    assert status == (0 if name in COMMANDS else None)
    if has_gpu:
        has_used_gpu = torch.cuda.max_memory_allocated() > before
        assert has_used_gpu == (device == "cuda")


@pytest.mark.parametrize("name", [*QUICK, "perplexity", "word_senses", "demo"])
def test_a_device_that_does_not_exist_is_an_error(entry_points, name):
    with pytest.raises((ValueError, SystemExit)) as error:
        getattr(entry_points, name)("cuda:7")
    assert "expected one of the devices cpu" in str(error.value)
    assert "got 'cuda:7'" in str(error.value)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_prints_that_a_device_does_not_exist(entry_points, capsys, name):
    assert getattr(entry_points, name)("cuda:7") == 1
    message = capsys.readouterr().err
    assert "expected one of the devices cpu" in message
    assert "got 'cuda:7'" in message


@pytest.mark.parametrize("read_device", [device_of, device_in_spacy])
def test_the_number_of_a_gpu_is_not_the_default(read_device):
    if torch.cuda.is_available():
        assert read_device(0) == torch.device("cuda", 0)
    else:
        with pytest.raises(ValueError, match="one of the devices cpu, got '0'"):
            read_device(0)


def test_names_and_defaults_are_those_of_elmo():
    signatures = (
        Elmo.from_pretrained,
        ElmoVectorizer,
        EmbedOptions,
        TrainedTask,
        annotate_file,
        TaskComponent,
        ElmoComponent,
        LanguageModel,
        PosTagger,
    )
    for signature in signatures:
        assert defaults(signature)["device"] is None, signature


def test_a_copy_keeps_the_device(files):
    """
    Not the device of a model that is loaded by default: the other process may have a different GPU,
    or none.
    """
    content = pickle.dumps(TrainedTask(files.model, device="cpu"))
    assert b"cpu" in content
    assert pickle.loads(content)(TEXT) == TrainedTask(files.model)(TEXT)


def test_a_gpu_is_the_default_if_there_is_one(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    # An empty variable is not set.
    for unset in (None, ""):
        assert device_of(unset).type == "cpu"
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    if torch.cuda.device_count():
        assert device_of(None).type == "cuda"
    else:
        # It was chosen, and torch has none.
        with pytest.raises(ValueError, match="got 'cuda'"):
            device_of(None)


def test_a_given_device_does_not_query_the_driver(monkeypatch):
    # A call would fail.
    monkeypatch.setattr("torch.cuda.is_available", None)
    assert device_of("cpu").type == "cpu"
