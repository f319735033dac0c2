"""
What the parts of a spaCy pipeline share: a biLM that is saved with it, and the words of a `Doc`.
"""

import shutil
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from traceback import walk_stack
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
import srsly
import torch
from spacy.tokens import Doc, Span
from thinc.util import get_torch_default_device

from elmo_tasks.files.json_files import read_json
from elmo_tasks.files.lines import located
from elmo_tasks.text import Word, in_nfc, sentence_ranges
from elmo_tasks.vectors.devices import device_of
from elmo_tasks.vectors.elmo import Elmo, Precision
from elmo_tasks.vectors.pretrained import is_ready

__all__ = [
    "ModelInPipeline",
    "PipelineBilm",
    "device_in_spacy",
    "is_called_by_the_user",
    "loading",
    "refuse_settings",
    "sentences_in",
    "with_white_space",
]

# What may be between the user's call and the function that makes a part of a pipeline.
_LIBRARIES_OF_SPACY = (
    "spacy",
    "thinc",
    "confection",
    "catalogue",
    "pydantic",
    "contextlib",
    "functools",
)
# The name of the model in the config, when it was saved.
_NAME = "name.json"


class _KnownSentences(NamedTuple):
    """The state of a document, and the sentences made from it, by the rule or without."""

    state: bytes
    sentences: dict[bool, list[list[Word]]]


# Until a document is dropped.
_SENTENCES_OF: WeakKeyDictionary[Doc, _KnownSentences] = WeakKeyDictionary()

loading = threading.RLock()
"""Held while a component loads its model, so threads that share a pipeline load it once."""


def device_in_spacy(device: str | None) -> torch.device:
    """
    By default the GPU that `spacy.require_gpu` or `prefer_gpu` has chosen before, or else the CPU.
    """
    if device in (None, ""):
        return device_of(get_torch_default_device())
    return device_of(device)


def is_called_by_the_user() -> bool:
    """
    Whether a part of a pipeline is made because the user's code has called `nlp.add_pipe`, or the
    like. spaCy calls the same functions for the config of a pipeline that it loads, and tells no
    component who has written it.
    """
    function_of_spacy = ""
    for frame, _ in walk_stack(None):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package in _LIBRARIES_OF_SPACY:
            function_of_spacy = frame.f_code.co_name
        elif package != "elmo_tasks":
            break
    return function_of_spacy in ("", "add_pipe", "create_pipe", "replace_pipe")


class ModelInPipeline:
    """
    A part of a pipeline with a model. It checks which model a config may name, and writes the model
    as files, or as bytes that contain them. spaCy's config has the other settings.
    """

    to_disk: Any
    from_disk: Any
    user_chose_model = False
    """
    Whether the user has named the model in this process. Somebody else may have written the config
    of a pipeline.
    """

    def initialize(self, get_examples: Any = None, *, nlp: Any = None) -> None:
        """spaCy calls this before a training, whose config comes from the user."""
        self.user_chose_model = True

    def check_name(self, model: str, *, is_ready: bool) -> str:
        """
        Returns the same name. An address is an error, and so is a model that would be fetched or
        unpacked (it is not `is_ready`), unless the user has named it in this process.
        """
        if "://" in model or not (is_ready or self.user_chose_model):
            expected = "a name or a path of a model on this machine"
            raise ValueError(
                f"expected {expected} as the model of a saved pipeline, got {model!r:.200}: "
                "`nlp.replace_pipe` takes other models"
            )
        return model

    def write_name(self, folder: Path, model: str) -> None:
        """Writes the model's name in the config next to the model, for `check_saved`."""
        srsly.write_json(folder / _NAME, model)

    def check_saved(self, folder: Path, model: str) -> Path:
        """
        Returns the same folder. It is an error if it is missing, or if the config no longer names
        the model that was saved in it.
        """
        if not folder.is_dir():
            raise ValueError(f"expected the folder of a saved component, got none: {folder}")
        file = folder / _NAME
        name = read_json(file) if file.is_file() else model
        if name != model:
            raise ValueError(
                f"expected the model that was saved, {name!r:.200}, got {model!r:.200} in the "
                "config: `nlp.replace_pipe` takes other models"
            )
        return folder

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        with TemporaryDirectory() as name:
            folder = Path(name)
            self.to_disk(folder)
            files = {}
            for path in folder.rglob("*"):
                if path.is_file():
                    files[str(path.relative_to(folder))] = path.read_bytes()
        data: bytes = srsly.msgpack_dumps(files)
        return data

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> Self:
        # Kept, because processes of `nlp.pipe` and `to_disk` read the files of a task again.
        folder = mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder)
        with located(type(self).__name__, "from_bytes"):
            for name, content in srsly.msgpack_loads(data).items():
                file = Path(folder, name)
                # The bytes may be untrusted: `../x` and absolute paths lead outside.
                if ".." in file.parts or not file.is_relative_to(folder):
                    raise ValueError(f"expected files of {type(self).__name__}, got {name!r}")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        self.from_disk(folder)
        return self


class PipelineBilm(ModelInPipeline):
    """
    A biLM that is loaded on first use, and written with the pipeline unless `save_weights` is off.
    """

    def __init__(
        self,
        bilm: str,
        *,
        save_weights: bool,
        device: str | None = None,
        precision: Precision | None = None,
    ) -> None:
        self.bilm = bilm
        self.user_chose_model = is_called_by_the_user()
        self.save_weights = save_weights
        self._load = partial(
            Elmo.from_pretrained, device=device_in_spacy(device), precision=precision
        )
        self._elmo: Elmo | None = None

    @property
    def elmo(self) -> Elmo:
        # Not earlier: a saved pipeline includes the weights, and the original folder may be gone.
        with loading:
            if self._elmo is None:
                name = self.check_name(self.bilm, is_ready=is_ready(self.bilm))
                self._elmo = self._load(name)
        return self._elmo

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        if self.save_weights:
            folder = Path(path)
            folder.mkdir(parents=True, exist_ok=True)
            self.elmo.bilm.save(folder / "options.json", folder / "weights.hdf5")
            self.write_name(folder, self.bilm)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Self:
        self.user_chose_model = False
        if self.save_weights:
            self._elmo = self._load(self.check_saved(Path(path), self.bilm))
        return self


def refuse_settings(name: str, settings: Mapping[str, Any]) -> None:
    """spaCy passes what `component_cfg` has for a component to its methods."""
    if settings:
        expected = f"nlp.add_pipe(..., config=...) for the settings of {name}"
        raise ValueError(f"expected {expected}, got {', '.join(settings)} in component_cfg")


def sentences_in(doc: Doc, *, by_rule: bool = False) -> list[list[Word]]:
    """
    The words of each sentence in NFC, without white space, made once for all components. A document
    without boundaries is one sentence, or those that the rule for texts finds.
    """
    # A component between two others may change the tokens and sentences.
    state = doc.to_array(["ORTH", "SPACY", "SENT_START"]).tobytes()
    known = _SENTENCES_OF.get(doc)
    if known is None or known.state != state:
        known = _KnownSentences(state, {})
        _SENTENCES_OF[doc] = known
    if by_rule not in known.sentences:
        spans = _sentence_spans(doc, by_rule)
        known.sentences[by_rule] = [_words_in(span) for span in spans]
    return known.sentences[by_rule]


def _words_in(span: Span) -> list[Word]:
    words = []
    for token in span:
        if not token.is_space:
            words.append(Word(in_nfc(token.text), token.idx, token.idx + len(token)))
    return words


def _sentence_spans(doc: Doc, by_rule: bool) -> Iterator[Span]:
    if doc.has_annotation("SENT_START"):
        yield from doc.sents
    elif by_rule:
        for sentence in sentence_ranges([token.text for token in doc]):
            yield doc[sentence.start : sentence.stop]
    else:
        yield doc[:]


def with_white_space(doc: Doc, words: np.ndarray) -> np.ndarray:
    """From shape `(..., n_words, dim)` to `(..., n_tokens, dim)`, zero for white space."""
    is_word = np.array([not token.is_space for token in doc], dtype=bool)
    shape = (*words.shape[:-2], len(doc), words.shape[-1])
    vectors = np.zeros(shape, words.dtype)
    vectors[..., is_word, :] = words
    return vectors
