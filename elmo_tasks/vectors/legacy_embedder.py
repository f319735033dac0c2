"""`ElmoEmbedder`, the class that AllenNLP had before 1.0, for code that still uses it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike, fspath
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from elmo_tasks.text import as_words
from elmo_tasks.vectors.elmo import Elmo, warn_of_marks
from elmo_tasks.vectors.pretrained import NAMED_BILMS, local_file, pretrained_files

__all__ = ["DEFAULT_OPTIONS_FILE", "DEFAULT_WEIGHT_FILE", "ElmoEmbedder"]

# The address of the authors' files in old programs, and of the same files today.
_OLD_SERVER = "https://s3-us-west-2.amazonaws.com/allennlp/"
_SERVER = "https://allennlp.s3.amazonaws.com/"
_DEFAULT = (
    f"{_OLD_SERVER}models/elmo/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway"
)
DEFAULT_OPTIONS_FILE = f"{_DEFAULT}_options.json"
DEFAULT_WEIGHT_FILE = f"{_DEFAULT}_weights.hdf5"


class ElmoEmbedder:
    """
    The layers of a biLM for sentences, with the methods and results of AllenNLP's class of this
    name (0.3 to 0.9). For new code, `Elmo`, which this class calls, is simpler.
    `elmo_tasks.corpora.embed.embed_file` writes files.

    Unlike AllenNLP's class, it keeps no state: earlier sentences do not change its vectors. A
    sentence without words has an empty float32 array of the biLM's own width.

    # Parameters

    options_file, weight_file
        Paths, or URLs that begin with `https://`. Files with a URL are downloaded on first use and
        kept in `ELMO_TASKS_HOME`. The default is the authors' biLM, `"original"` in
        `Elmo.from_pretrained`.
    cuda_device
        The number of a GPU. A negative number is the CPU.
    """

    def __init__(
        self,
        options_file: str | PathLike[str] = DEFAULT_OPTIONS_FILE,
        weight_file: str | PathLike[str] = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
    ) -> None:
        device = "cpu" if cuda_device < 0 else f"cuda:{cuda_device}"
        local_options, local_weights = _local_files(options_file, weight_file)
        self._elmo = Elmo.from_files(local_options, local_weights, device=device)
        self.elmo_bilm = self._elmo.bilm
        self.cuda_device = cuda_device
        # flair moves the states of AllenNLP's LSTM when it unpickles an embedder; this class has
        # none.
        vars(self.elmo_bilm)["_elmo_lstm"] = SimpleNamespace(_states=())

    @torch.no_grad()
    def batch_to_embeddings(
        self, batch: Sequence[Sequence[str]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """
        The layers of sentences, given as lists of words, of shape
        `(batch_size, n_layers, timesteps, dim)`, zero where there is no word; and the mask, int64,
        of shape `(batch_size, timesteps)`.
        """
        sentences = list(map(as_words, batch))
        for words in sentences:
            warn_of_marks(words)
        output = self.elmo_bilm(sentences)
        # Shape: (batch_size, n_layers, timesteps, dim)
        return torch.stack(output.layers, 1), output.mask.long()

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """
        The layers of a sentence, given as a list of words, float32, of shape
        `(n_layers, n_words, dim)`.
        """
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """
        For each sentence, given as a list of words, its layers, float32, of shape
        `(n_layers, n_words, dim)`.
        """
        # Not strings: `Elmo` would split them into words; for AllenNLP each of their letters was a
        # word.
        return self._elmo.embed(list(map(as_words, batch)), layers="all", progress=False)

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 64
    ) -> Iterator[np.ndarray]:
        """
        Like `embed_batch`, one sentence at a time. At most `batch_size` sentences are read ahead.
        """
        remaining = iter(sentences)
        batch = list(islice(remaining, batch_size))
        while batch:
            yield from self.embed_batch(batch)
            batch = list(islice(remaining, batch_size))


def _local_files(
    options_file: str | PathLike[str], weight_file: str | PathLike[str]
) -> tuple[Path, Path]:
    """
    Local paths of files that are given as paths or URLs. The files of a named biLM are downloaded
    only once.
    """
    options = fspath(options_file).replace(_OLD_SERVER, _SERVER)
    weights = fspath(weight_file).replace(_OLD_SERVER, _SERVER)
    for name, addresses in NAMED_BILMS.items():
        for address in addresses:
            if options == f"{address}options.json" and weights == f"{address}weights.hdf5":
                return pretrained_files(name)
    return local_file(options), local_file(weights)
