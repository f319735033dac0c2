"""`ElmoEmbedder`, the class that AllenNLP had before 1.0, so that code written for it runs."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike
from tempfile import NamedTemporaryFile
from types import SimpleNamespace
from typing import IO, Literal

import numpy as np
import torch

from elmo_tasks.embed import EmbedOptions, Hdf5Layout, embed_file
from elmo_tasks.vectors.addresses import DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE, local_files
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.layer_selection import Layers
from elmo_tasks.vectors.sentences import words_of

__all__ = [
    "DEFAULT_BATCH_SIZE",
    "DEFAULT_OPTIONS_FILE",
    "DEFAULT_WEIGHT_FILE",
    "LAYERS_OF_FORMATS",
    "ElmoEmbedder",
    "batch_tokens_of",
    "device_of",
]

DEFAULT_BATCH_SIZE = 64
LAYERS_OF_FORMATS: dict[str, Layers] = {"all": "all", "top": "top", "average": "mix"}
"""The layers of each output format."""
# Words of a sentence, with its boundaries: 64 sentences are as many words as `Elmo` computes at once.
_WORDS_A_SENTENCE = 64


class ElmoEmbedder:
    """
    The layers of a biLM for sentences, with the methods and results that AllenNLP's class of this name had (0.3 to
    0.9). New code is simpler with `Elmo`, which this class calls.

    Unlike AllenNLP's, it has no state: a sentence has the same vectors whatever was embedded before it. It computes a
    large batch in parts, to bound the memory. A sentence without words has float32 zeros of the biLM's own width.


    # Parameters

    options_file, weight_file
        Paths, or addresses that begin with `https://`. What has an address is downloaded at the first use, and kept in
        `ELMO_TASKS_HOME`. The default is the authors' biLM, `"original"` of `Elmo.from_pretrained`.
    cuda_device
        The number of a GPU. A negative number is the CPU.

    # Raises

    `ValueError`
        If a file is damaged or of another format, or there is no such GPU.
    `OSError`
        If a file is not there, or cannot be downloaded.
    """

    def __init__(
        self,
        options_file: str | PathLike[str] = DEFAULT_OPTIONS_FILE,
        weight_file: str | PathLike[str] = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
    ) -> None:
        device = device_of(cuda_device)
        self._elmo = Elmo.from_files(*local_files(options_file, weight_file), device=device)
        self.elmo_bilm = self._elmo.bilm
        self.cuda_device = cuda_device
        # flair moves the states of AllenNLP's LSTM when it unpickles an embedder; there are none to be moved.
        vars(self.elmo_bilm)["_elmo_lstm"] = SimpleNamespace(_states=())

    @torch.no_grad()
    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[torch.Tensor, torch.Tensor]:
        """
        # Parameters

        batch
            Sentences as lists of words.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor]`
            The layers, of shape `(batch_size, n_layers, timesteps, dim)`, zero where there is no word; and the mask,
            int64, of shape `(batch_size, timesteps)`. Both are on the device of the biLM.

        # Raises

        `ValueError`
            If a sentence is a string, or something else than a list of words.
        """
        output = self.elmo_bilm(_sentences(batch, "batch_to_embeddings"))
        # Shape: (batch_size, n_layers, timesteps, dim)
        return torch.stack(output.layers, 1), output.mask.long()

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """
        # Parameters

        sentence
            The words of a sentence.

        # Returns

        `np.ndarray`
            Its layers, float32, of shape `(n_layers, n_words, dim)`.

        # Raises

        `ValueError`
            If it is a string, or something else than a list of words.
        """
        if isinstance(sentence, str):
            raise ValueError(
                f"embed_sentence takes a list of words, but got the string {sentence[:60]!r}: split it into words, "
                "with sentence.split() for example, or a protein into its letters, with list(sequence)"
            )
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """
        # Parameters

        batch
            Sentences as lists of words.

        # Returns

        `List[np.ndarray]`
            The layers of each sentence, float32, of shape `(n_layers, n_words, dim)`.

        # Raises

        `ValueError`
            If a sentence is a string, or something else than a list of words.
        """
        return self._elmo.embed(_sentences(batch, "embed_batch"), layers="all", progress=False)

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[np.ndarray]:
        """
        As `embed_batch`, sentence by sentence. No more than `batch_size` sentences are read ahead.

        # Raises

        `ValueError`
            At once, if `sentences` is a string or `batch_size` below 1; when it is read, if a sentence is no list of
            words.
        """
        batch_tokens_of(batch_size)
        if isinstance(sentences, str):
            raise _not_sentences(sentences, "embed_sentences")
        return self._embedded(iter(sentences), batch_size)

    def _embedded(self, sentences: Iterator[Sequence[str]], batch_size: int) -> Iterator[np.ndarray]:
        while batch := list(islice(sentences, batch_size)):
            yield from self._elmo.embed(_sentences(batch, "embed_sentences"), layers="all", progress=False)

    def embed_file(
        self,
        input_file: IO[str] | str | PathLike[str],
        output_file_path: str | PathLike[str],
        output_format: Literal["all", "top", "average"] = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """
        Writes the vectors of a text into an HDF5 file, whole or not at all: a dataset for each line, under its number
        from `"0"` on; and, in the dataset `sentence_to_index`, a JSON object with the number of each sentence (of equal
        ones the last). `allennlp elmo` does the same, and resumes where it was interrupted.

        # Parameters

        input_file
            A file that is open for reading, or a path. Each line is a sentence, with white space between its words; a
            blank one has no words.
        output_file_path
            The HDF5 file.
        output_format
            `"all"` layers, of shape `(n_layers, n_words, dim)`; the `"top"` one or the `"average"` of all, of shape
            `(n_words, dim)`.
        batch_size
            How many sentences of 64 words are computed at once.
        forget_sentences
            Whether `sentence_to_index` is omitted.
        use_sentence_keys
            Whether the sentence is the name of its dataset. Each may then occur only once.

        # Raises

        `ValueError`
            If an argument has another value, or the text cannot be read or has a sentence that cannot be a key.
        `FileExistsError`
            If the HDF5 file is there already.
        `OSError`
            If it cannot be written.
        """
        options = EmbedOptions(
            layers=LAYERS_OF_FORMATS[output_format], batch_tokens=batch_tokens_of(batch_size), nfc=False
        )
        layout = Hdf5Layout.of_allennlp(forget_sentences, use_sentence_keys)
        if isinstance(input_file, str | PathLike):
            embed_file(input_file, output_file_path, options, layout=layout, elmo=self._elmo)
            return
        with NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as text:
            text.writelines(input_file)
            text.flush()
            embed_file(text.name, output_file_path, options, layout=layout, elmo=self._elmo)


def device_of(cuda_device: int) -> str:
    """
    The device that a number of AllenNLP's means: negative ones are the CPU.

    # Raises

    `ValueError`
        If it is something else, or torch has no such GPU.
    """
    n_gpus = torch.cuda.device_count()
    if isinstance(cuda_device, int) and not isinstance(cuda_device, bool) and cuda_device < n_gpus:
        return "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"
    here = "none" if not n_gpus else "0" if n_gpus == 1 else f"0 to {n_gpus - 1}"
    raise ValueError(
        f"cuda_device must be the number of a GPU that torch has here ({here}), or -1 for the CPU, but is "
        f"{cuda_device!r}"
    )


def batch_tokens_of(batch_size: int) -> int:
    """
    The words of so many sentences, as `Elmo.embed_iter` counts them.

    # Raises

    `ValueError`
        If it is no number, or below 1.
    """
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be a whole number of at least 1, but is {batch_size!r}")
    return batch_size * _WORDS_A_SENTENCE


def _sentences(batch: Iterable[Sequence[str]], method: str) -> list[list[str]]:
    # `Elmo` would split a string into words; for AllenNLP each of its letters was a word.
    if isinstance(batch, str):
        raise _not_sentences(batch, method)
    found = []
    for index, sentence in enumerate(batch):
        if isinstance(sentence, str):
            raise ValueError(
                f"{method} takes a list of sentences, each a list of words, but sentence {index} is the string "
                f"{sentence[:60]!r}: split it into words, or call embed_sentence if the list is one sentence"
            )
        found.append(words_of(sentence, index))
    return found


def _not_sentences(text: str, method: str) -> ValueError:
    return ValueError(
        f"{method} takes a list of sentences, each a list of words, but got the string {text[:60]!r}: split it into "
        "words, and put those of each sentence into a list"
    )
