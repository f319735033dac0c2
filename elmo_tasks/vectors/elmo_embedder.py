"""`ElmoEmbedder`, the class that AllenNLP had before 1.0, so that code written for it runs."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace
from typing import IO, Literal

import numpy as np
import torch

from elmo_tasks.embed import EmbedOptions, Hdf5Layout, embed_file
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.layers import Layers
from elmo_tasks.vectors.pretrained import NAMED_BILMS, cache_home, downloaded, pretrained_files

__all__ = [
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "LAYERS_OF_FORMATS",
    "ElmoEmbedder",
    "device_of",
    "local_files",
]

# The address of the authors' files in old programs, and that of the same files today.
_OLD_SERVER = "https://s3-us-west-2.amazonaws.com/allennlp/"
_SERVER = "https://allennlp.s3.amazonaws.com/"
_DEFAULT = f"{_OLD_SERVER}models/elmo/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway"
DEFAULT_OPTIONS_FILE = f"{_DEFAULT}_options.json"
DEFAULT_WEIGHT_FILE = f"{_DEFAULT}_weights.hdf5"

LAYERS_OF_FORMATS: dict[str, Layers] = {"all": "all", "top": "top", "average": "mix"}
"""The layers of each output format."""
WORDS_PER_SENTENCE = 64
"""With its boundaries: 64 sentences are as many words as `Elmo` computes at once."""


class ElmoEmbedder:
    """
    The layers of a biLM for sentences, with the methods and results that AllenNLP's class of this name had (0.3 to
    0.9). New code is simpler with `Elmo`, which this class calls.

    Unlike AllenNLP's, it carries no state: a sentence has the same vectors whatever was embedded before it. A sentence
    without words has float32 zeros of the biLM's own width.


    # Parameters

    options_file, weight_file
        Paths, or addresses that begin with `https://`. What has an address is downloaded at the first use, and kept in
        `ELMO_TASKS_HOME`. The default is the authors' biLM, `"original"` of `Elmo.from_pretrained`.
    cuda_device
        The number of a GPU. A negative number is the CPU.
    """

    def __init__(
        self,
        options_file: str | PathLike[str] = DEFAULT_OPTIONS_FILE,
        weight_file: str | PathLike[str] = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
    ) -> None:
        self._elmo = Elmo.from_files(*local_files(options_file, weight_file), device=device_of(cuda_device))
        self.elmo_bilm = self._elmo.bilm
        self.cuda_device = cuda_device
        # flair moves the states of AllenNLP's LSTM when it unpickles an embedder; there are none to be moved.
        vars(self.elmo_bilm)["_elmo_lstm"] = SimpleNamespace(_states=())

    @torch.no_grad()
    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The layers of sentences, given as lists of words, of shape `(batch_size, n_layers, timesteps, dim)`, zero where
        there is no word; and the mask, int64, of shape `(batch_size, timesteps)`.
        """
        output = self.elmo_bilm([_words(sentence) for sentence in batch])
        # Shape: (batch_size, n_layers, timesteps, dim)
        return torch.stack(output.layers, 1), output.mask.long()

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """The layers of a sentence, given as a list of words, float32, of shape `(n_layers, n_words, dim)`."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """The layers of sentences, given as lists of words: for each float32 of shape `(n_layers, n_words, dim)`."""
        return self._elmo.embed([_words(sentence) for sentence in batch], layers="all", progress=False)

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = 64) -> Iterator[np.ndarray]:
        """As `embed_batch`, sentence by sentence. No more than `batch_size` sentences are read ahead."""
        sentences = iter(sentences)
        while batch := list(islice(sentences, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: IO[str] | str | PathLike[str],
        output_file_path: str | PathLike[str],
        output_format: Literal["all", "top", "average"] = "all",
        batch_size: int = 64,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """
        Writes the vectors of a text into an HDF5 file: a dataset for each line, under its number from `"0"` on; and, in
        the dataset `sentence_to_index`, a JSON object with the number of each sentence (of equal ones the last).
        `allennlp elmo` does the same, and can resume.

        # Parameters

        input_file
            An open file or a path. Each line is a sentence, with white space between its words.
        output_file_path
            The HDF5 file, which must not exist.
        output_format
            `"all"` layers, of shape `(n_layers, n_words, dim)`; the `"top"` one or the `"average"` of all, of shape
            `(n_words, dim)`.
        batch_size
            How many sentences of 64 words are computed at once.
        forget_sentences
            Whether `sentence_to_index` is omitted.
        use_sentence_keys
            Whether the sentence is the name of its dataset. Each may then occur only once.
        """
        options = EmbedOptions(
            layers=LAYERS_OF_FORMATS[output_format], batch_tokens=batch_size * WORDS_PER_SENTENCE, nfc=False
        )
        layout = Hdf5Layout.of_allennlp(forget_sentences, use_sentence_keys)
        if isinstance(input_file, str | PathLike):
            embed_file(input_file, output_file_path, options, layout=layout, elmo=self._elmo)
            return
        with NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as text:
            text.writelines(input_file)
            text.flush()
            embed_file(text.name, output_file_path, options, layout=layout, elmo=self._elmo)


def local_files(options_file: str | PathLike[str], weight_file: str | PathLike[str]) -> tuple[Path, Path]:
    """Local paths of the files of a biLM, given as paths or as addresses; those of a named biLM are shared with it."""
    given = [os.fspath(file).replace(_OLD_SERVER, _SERVER) for file in (options_file, weight_file)]
    for name, address in NAMED_BILMS.items():
        if given == [f"{address}options.json", f"{address}weights.hdf5"]:
            return pretrained_files(name)
    options, weights = (_local(file) for file in given)
    return options, weights


def _local(file: str) -> Path:
    if "://" not in file:
        return Path(file).expanduser()
    digest, name = hashlib.sha256(file.encode()).hexdigest()[:16], file.rpartition("/")[2]
    return downloaded(file, cache_home() / "addresses" / digest / name)


def device_of(cuda_device: int) -> str:
    """The device that a number of AllenNLP's means: negative ones are the CPU."""
    return "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"


def _words(sentence: Sequence[str]) -> Sequence[str]:
    # `Elmo` would split a string into words; for AllenNLP each of its letters was a word.
    if isinstance(sentence, str):
        raise ValueError(f"expected a sentence as a list of words, got the string {sentence[:60]!r}")
    return sentence
