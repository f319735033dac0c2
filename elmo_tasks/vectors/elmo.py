"""ELMo for people without AllenNLP: sentences in, arrays out."""

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from os import PathLike
from typing import Any, Literal

import torch

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.cache.cached_bilm import CachedBilm
from elmo_tasks.bilm.cache.layer_cache import LayerCache
from elmo_tasks.progress import progress_bar
from elmo_tasks.tokenization import blank_tokenizer
from elmo_tasks.vectors.batching import batches_by_length, chunks
from elmo_tasks.vectors.documents import embed_documents
from elmo_tasks.vectors.layer_selection import LayerSelection
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["Elmo"]

_OUTPUTS = ("numpy", "torch")


class Elmo:
    """
    Vectors of words and sentences from a biLM. Every sentence is embedded by itself: it has the same vectors whatever
    is embedded before, after or beside it, but for the rounding of float32.

    # Parameters

    bilm : `Bilm`
        The biLM, which is not copied; `from_pretrained` and `from_files` make one. No gradients are computed.
    layer_cache : `LayerCache`, optional (default = `None`)
        Where to keep the layers of sentences from one run to the next.
    tokenizer : `Callable[[str], Sequence[str]]`, optional (default = `None`)
        What splits sentences that are strings into words. `None`: spaCy's rules for English, which must be installed
        for that; sentences that are lists of words need no tokenizer.

    # Raises

    `ValueError`
        If the biLM is stateful.
    """

    def __init__(
        self,
        bilm: Bilm,
        *,
        layer_cache: LayerCache | None = None,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        if bilm.stateful:
            raise ValueError(
                "the biLM must not be stateful, since sentences are put into batches by their length: make it with "
                "stateful=False"
            )
        self.bilm = bilm
        self._layers_of = bilm if layer_cache is None else CachedBilm(bilm, layer_cache)
        self._tokenizer = tokenizer

    @classmethod
    def from_pretrained(
        cls,
        name_or_folder: str | PathLike[str] = "small-open",
        *,
        device: str | torch.device | None = None,
        precision: Literal["float32", "tf32", "bf16"] | None = None,
        **kwargs: Any,
    ) -> "Elmo":
        """
        # Parameters

        name_or_folder : `str`, optional (default = `"small-open"`)
            `"small-open"`, the small biLM that comes with this package and needs no network; `"small"`, `"medium"`,
            `"original"` or `"original-5.5b"`, the authors' weights, which are downloaded at the first use and kept (see
            `pretrained_files`); or a folder with `options.json` and `weights.hdf5`.
        device : `Union[str, torch.device]`, optional (default = `None`)
            Where to compute. `None`: on the GPU if there is one, else on the CPU.
        precision : `Literal["float32", "tf32", "bf16"]`, optional (default = `None`)
            What matrix products are computed in: see `Bilm`. `None`: float32.
        **kwargs
            `layer_cache`, `tokenizer`: see the class.

        # Raises

        `ValueError`
            If it is neither a name nor a folder, a downloaded file is not the one it was, a file is not what it should
            be, or there is no such device.
        `OSError`
            If a file is not there, or cannot be downloaded.
        """
        options_file, weight_file = pretrained_files(name_or_folder)
        return cls.from_files(options_file, weight_file, device=device, precision=precision, **kwargs)

    @classmethod
    def from_files(
        cls,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        device: str | torch.device | None = None,
        precision: Literal["float32", "tf32", "bf16"] | None = None,
        **kwargs: Any,
    ) -> "Elmo":
        """
        As `from_pretrained`, for two files of any name.

        # Parameters

        options_file, weight_file : `str`
            Local paths of a biLM in the public format.
        device, precision, **kwargs
            See `from_pretrained`.

        # Raises

        `ValueError`
            If a file is not what it should be, or there is no such device; `OSError` if a file is not there.
        """
        device = _usable(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        bilm = Bilm.from_files(options_file, weight_file, precision=precision or "float32").requires_grad_(False)
        return cls(bilm.to(device), **kwargs)

    @property
    def dim(self) -> int:
        """Units of a vector."""
        return self.bilm.get_output_dim()

    @property
    def n_layers(self) -> int:
        """Layers of the biLM: the context-insensitive one and the LSTMs."""
        return self.bilm.num_layers

    def embed(self, sentences: Iterable[str | Sequence[str]], **kwargs: Any) -> list[Any]:
        """
        The vectors of sentences, all in memory; see `embed_iter`, whose arguments are the same, for those that do not
        fit.

        # Parameters

        sentences, **kwargs
            See `embed_iter`.

        # Returns

        `List[Union[np.ndarray, torch.Tensor]]`
            One array for each sentence, in the order of the sentences.
        """
        return list(self.embed_iter(sentences, **kwargs))

    def embed_iter(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        layers: Literal["mix", "all", "top"] | int = "mix",
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        pool: Literal["mean", "max", "first-last"] | None = None,
        batch_tokens: int = 4096,
        progress: bool | None = None,
        output: Literal["numpy", "torch"] = "numpy",
    ) -> Iterator[Any]:
        """
        The vectors of sentences one after another, in their order. About eight batches of sentences are read ahead, and
        their vectors are in memory; no more, however many sentences there are.

        # Parameters

        sentences : `Iterable[Union[str, Sequence[str]]]`
            Sentences as lists of words, which are taken as they are, or as strings, which are split into words.
        layers, weights, gamma, pool
            What the vectors are, by default the plain average of the layers for each word: see `LayerSelection`.
        batch_tokens : `int`, optional (default = `4096`)
            How many words are computed at once, padding and sentence boundaries counted; a longer sentence is computed
            by itself. Fewer need less memory, more are faster on a GPU.
        progress : `bool`, optional (default = `None`)
            Whether to show on stderr how far it is. `None`: if stderr is a terminal.
        output : `Literal["numpy", "torch"]`, optional (default = `"numpy"`)
            Arrays of NumPy, or tensors on the device of the biLM.

        # Returns

        `Iterator[Union[np.ndarray, torch.Tensor]]`
            For each sentence its vectors, float32, of shape `(n_words, dim)`, or `(dim,)` with a `pool`; with
            `layers="all"` `(n_layers, n_words, dim)` or `(n_layers, dim)`. A sentence without words keeps its place: it
            has the shape `(0, dim)`, and zeros with a `pool`.

        # Raises

        `ValueError`
            If an argument is none of these, at once; or a sentence is neither a string nor a list of words, which the
            message numbers from 0, when it is read.
        `ModuleNotFoundError`
            If a sentence is a string and spaCy is not installed.
        """
        if isinstance(sentences, str):
            raise ValueError(
                f"sentences must be a list of sentences, but is the string {sentences[:60]!r}: put it into a list"
            )
        if output not in _OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}, but is {output!r}")
        if not isinstance(batch_tokens, int) or isinstance(batch_tokens, bool) or batch_tokens < 1:
            raise ValueError(f"batch_tokens must be a whole number of at least 1, but is {batch_tokens!r}")
        readout = LayerSelection(n_layers=self.n_layers, layers=layers, weights=weights, gamma=gamma, pool=pool)
        return self._embedded(sentences, readout, batch_tokens, progress, output == "numpy")

    def embed_documents(
        self, documents: Iterable[str | Sequence[str | Sequence[str]]], *, whole: bool = False, **kwargs: Any
    ) -> Iterator[Any]:
        """
        The vectors of documents one after another, NumPy arrays of the words of each; or one vector each with a `pool`.
        The arguments, the memory that it takes and what it raises are those of `elmo_tasks.vectors.documents`.

        # Parameters

        documents : `Iterable[Union[str, Sequence[Union[str, Sequence[str]]]]]`
            Each a text, which spaCy's rules split into sentences, or a list of sentences.
        whole : `bool`, optional (default = `False`)
            Whether the biLM reads a document as one sequence, and not sentence by sentence.
        **kwargs
            `layers`, `weights`, `gamma`, `pool`, `batch_tokens`, `progress`: see `embed_iter`.

        # Returns

        `Iterator[np.ndarray]`
            Shape `(n_words, dim)` each, and what `embed_iter` says for `pool` and `layers="all"`.
        """
        return embed_documents(self, documents, whole=whole, **kwargs)

    def _embedded(
        self,
        sentences: Iterable[str | Sequence[str]],
        readout: LayerSelection,
        batch_tokens: int,
        progress: bool | None,
        as_numpy: bool,
    ) -> Iterator[Any]:
        total = len(sentences) if isinstance(sentences, Sized) else None
        words = (self.words(index, sentence) for index, sentence in enumerate(sentences))
        with progress_bar(total, progress, "sentences") as advance:
            for chunk in chunks(words, batch_tokens):
                found: list[Any] = [None] * len(chunk)
                for rows in batches_by_length(chunk, batch_tokens):
                    arrays = self._batch([chunk[row] for row in rows], readout, as_numpy)
                    for row, array in zip(rows, arrays, strict=True):
                        found[row] = array
                    advance(len(rows))
                yield from found

    # Not around the generator, which would switch gradients off for whoever uses it.
    @torch.no_grad()
    def _batch(self, sentences: list[list[str]], readout: LayerSelection, as_numpy: bool) -> list[Any]:
        vectors = readout(self._layers_of(sentences)).float()
        arrays: list[Any] = list(vectors.cpu().numpy() if as_numpy else vectors)
        if readout.pool is None:
            arrays = [array[..., : len(words), :] for array, words in zip(arrays, sentences, strict=True)]
        # Copies: a part would keep its whole batch in memory.
        return [array.copy() if as_numpy else array.clone() for array in arrays]

    def words(self, index: int, sentence: str | Sequence[str]) -> list[str]:
        """
        The words of a sentence, as it is embedded; `index` is its number, for the message if it is none.
        """
        if isinstance(sentence, str):
            # spaCy takes no subclass of str, as NumPy's arrays of strings have.
            return list((self._tokenizer or blank_tokenizer())(str(sentence)))
        try:
            words = list(sentence)
        except TypeError:
            raise ValueError(f"{_RULE}, but sentence {index} is {sentence!r:.80}") from None
        for word in words:
            if not isinstance(word, str):
                raise ValueError(f"{_RULE}, but sentence {index} has the word {word!r:.80}, a {type(word).__name__}")
        return words


def _usable(device: str | torch.device) -> str | torch.device:
    """A device that is there, since torch says so late, with an error of any kind."""
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"device must be one that torch has here, like 'cpu' or 'cuda', but is {str(device)!r}: {error}"
        ) from error
    return device


_RULE = "a sentence must be a string, or a list of words that are strings"
