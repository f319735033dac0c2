"""ELMo for people without AllenNLP: sentences in, arrays out."""

import logging
from collections.abc import Iterable, Iterator, Sequence, Sized
from functools import partial
from itertools import chain, islice
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, overload

import numpy as np
import torch

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.progress import progress_bar
from elmo_tasks.vectors.batching import batches_by_length, chunks
from elmo_tasks.vectors.documents import Document, embed_documents
from elmo_tasks.vectors.layer_selection import Layers, LayerSelection
from elmo_tasks.vectors.pooling import Pool
from elmo_tasks.vectors.pretrained import pretrained_files
from elmo_tasks.vectors.seen_scripts import script_notice, seen_scripts
from elmo_tasks.vectors.sentences import Sentence, Tokenizer, refuse_no_list, words_of

if TYPE_CHECKING:
    from elmo_tasks.bilm.cache.cached_bilm import CachedBilm
    from elmo_tasks.bilm.cache.layer_cache import LayerCache

__all__ = ["Elmo", "EmbedArguments", "Precision"]

Precision = Literal["float32", "bf16"]
"""Of the biLM's matrix products: see `Bilm`."""

_OUTPUTS = ("numpy", "torch")
_WORDS_LOOKED_AT = 1000

logger = logging.getLogger(__name__)


class EmbedArguments(TypedDict, total=False):
    """The keyword arguments of `Elmo.embed_iter` but for `output`."""

    layers: Layers
    weights: Sequence[float] | None
    gamma: float
    pool: Pool | None
    batch_tokens: int
    progress: bool | None


class Elmo:
    """
    Vectors of words and sentences from a biLM. Every sentence is embedded by itself: it has the same vectors whatever
    is embedded before it, after it or in the same batch, but for the rounding of float32.

    # Parameters

    bilm
        The biLM, which is not copied; `from_pretrained` and `from_files` make one that is frozen. No gradients are
        computed; but a biLM whose parameters require them, since it is trained between two calls, is slower.
    layer_cache
        Keeps the layers of sentences of a frozen biLM from one run to the next.
    tokenizer
        Splits sentences that are strings into words. `None`: spaCy's rules for English, for which spaCy must be
        installed; sentences that are lists of words need no tokenizer.

    # Raises

    `ValueError`
        If the biLM is stateful, or is to have a layer cache and is not frozen, or the tokenizer is no function.
    """

    # The name or folder of the biLM and its scripts, until a text was looked at.
    _scripts: tuple[str | PathLike[str], frozenset[str] | None] | None = None

    def __init__(
        self, bilm: Bilm, *, layer_cache: "LayerCache | None" = None, tokenizer: Tokenizer | None = None
    ) -> None:
        if bilm.stateful:
            raise ValueError(
                "the biLM must not be stateful, since sentences are put into batches by their length: make it with "
                "stateful=False"
            )
        if tokenizer is not None and not callable(tokenizer):
            raise ValueError(
                f"a tokenizer must be a function from a string to its words, but is {tokenizer!r:.80}: for spaCy's "
                "rules of a language give elmo_tasks.tokenization.blank_tokenizer('de')"
            )
        self.bilm = bilm
        self._layers_of: Bilm | CachedBilm = bilm
        if layer_cache is not None:
            if any(parameter.requires_grad for parameter in bilm.parameters()):
                raise ValueError(
                    "a biLM with a layer cache must be frozen, but some of its parameters require gradients: call "
                    "bilm.requires_grad_(False), or omit layer_cache while it is trained"
                )
            # It needs lmdb.
            from elmo_tasks.bilm.cache import cached_bilm

            self._layers_of = cached_bilm.CachedBilm(bilm, layer_cache)
        self._tokenizer = tokenizer

    @classmethod
    def from_pretrained(
        cls,
        bilm: str | PathLike[str] = "small-open",
        *,
        device: str | torch.device | None = None,
        precision: Precision | None = None,
        layer_cache: "LayerCache | None" = None,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """
        # Parameters

        bilm
            `"small-open"`, the small biLM that comes with this package and needs no network; `"small"`, `"medium"`,
            `"original"` or `"original-5.5b"`, the authors' weights, which are downloaded at the first use and kept (see
            `pretrained_files`); `"efml-ko"` or another of ELMoForManyLangs; or a folder with `options.json` and
            `weights.hdf5`, or with the files of a model of ELMoForManyLangs.
        device
            Where to compute. `None`: on the GPU if there is one, else on the CPU.
        precision
            Of the matrix products: see `Bilm`. `None`: float32.
        layer_cache, tokenizer
            See the class.

        # Raises

        `ValueError`
            If the biLM is neither a known name nor a folder, a downloaded file has changed since, a file is damaged or
            of another format, or there is no such device.
        `OSError`
            If a file is not there, or cannot be downloaded.
        """
        options_file, weight_file = pretrained_files(bilm)
        made = cls.from_files(
            options_file,
            weight_file,
            device=device,
            precision=precision,
            layer_cache=layer_cache,
            tokenizer=tokenizer,
        )
        made._scripts = bilm, seen_scripts(bilm)
        return made

    @classmethod
    def from_files(
        cls,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        device: str | torch.device | None = None,
        precision: Precision | None = None,
        layer_cache: "LayerCache | None" = None,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """
        As `from_pretrained`, for two files of any name.

        # Parameters

        options_file, weight_file
            Local paths of a biLM: see `Bilm.from_files`.
        device, precision, layer_cache, tokenizer
            See `from_pretrained`.

        # Raises

        `ValueError`
            If a file is damaged or of another format, or there is no such device.
        `OSError`
            If a file is not there.
        """
        device = _usable(("cuda" if torch.cuda.is_available() else "cpu") if device is None else device)
        bilm = Bilm.from_files(options_file, weight_file, precision=precision or "float32").requires_grad_(False)
        return cls(bilm.to(device), layer_cache=layer_cache, tokenizer=tokenizer)

    @property
    def dim(self) -> int:
        """Units of a vector."""
        return self.bilm.get_output_dim()

    @property
    def n_layers(self) -> int:
        """Layers of the biLM: the context-insensitive one and the LSTMs."""
        return self.bilm.num_layers

    @overload
    def embed(
        self,
        sentences: Iterable[Sentence],
        *,
        output: Literal["numpy"] = "numpy",
        **arguments: Unpack[EmbedArguments],
    ) -> list[np.ndarray]: ...

    @overload
    def embed(
        self, sentences: Iterable[Sentence], *, output: Literal["torch"], **arguments: Unpack[EmbedArguments]
    ) -> list[torch.Tensor]: ...

    def embed(
        self,
        sentences: Iterable[Sentence],
        *,
        output: Literal["numpy", "torch"] = "numpy",
        **arguments: Unpack[EmbedArguments],
    ) -> Any:
        """
        The vectors of sentences, all in memory; for those that do not fit there is `embed_iter`. A sentence that is a
        string is split by the tokenizer, by default spaCy's rules for English; the command `python -m elmo_tasks embed`
        splits its lines at white space unless it is called with `--tokenize`.

        # Parameters

        sentences, output, **arguments
            See `embed_iter`.

        # Returns

        `List[np.ndarray]`
            One array for each sentence, in the order of the sentences; tensors with `output="torch"`.
        """
        return list(self._checked(sentences, output=output, **arguments))

    @overload
    def embed_iter(
        self,
        sentences: Iterable[Sentence],
        *,
        output: Literal["numpy"] = "numpy",
        **arguments: Unpack[EmbedArguments],
    ) -> Iterator[np.ndarray]: ...

    @overload
    def embed_iter(
        self, sentences: Iterable[Sentence], *, output: Literal["torch"], **arguments: Unpack[EmbedArguments]
    ) -> Iterator[torch.Tensor]: ...

    def embed_iter(
        self,
        sentences: Iterable[Sentence],
        *,
        output: Literal["numpy", "torch"] = "numpy",
        **arguments: Unpack[EmbedArguments],
    ) -> Any:
        """
        The vectors of sentences one after another, in their order. About eight batches of sentences are read ahead, and
        their vectors are in memory; no more, however many sentences there are.

        # Parameters

        sentences
            Sentences as lists of words, which are taken as they are, or as strings, which the tokenizer splits into
            words: see `embed`.
        layers : `Union[Literal["mix", "all", "top"], int]`, optional (default = `"mix"`)
            Which layers: their mix, all of them kept apart, the highest, or the one of that number. See
            `LayerSelection`.
        weights : `Sequence[float]`, optional (default = `None`)
            Of the mix, a number for each layer before the softmax. `None`: the plain average of the layers.
        gamma : `float`, optional (default = `1.0`)
            Scales the vectors.
        pool : `Literal["mean", "max", "first-last"]`, optional (default = `None`)
            One vector for each sentence: see `pooled`. `None`: a vector for each word.
        batch_tokens : `int`, optional (default = `4096`)
            How many words are computed at once, padding and sentence boundaries counted; a longer sentence is computed
            by itself. Fewer need less memory, more are faster on a GPU.
        progress : `bool`, optional (default = `None`)
            Whether to show on stderr how far it is. `None`: if stderr is a terminal.
        output
            Arrays of NumPy, or tensors on the device of the biLM.

        # Returns

        `Iterator[np.ndarray]`
            For each sentence its vectors, float32, of shape `(n_words, dim)`, or `(dim,)` with a `pool`; with
            `layers="all"` `(n_layers, n_words, dim)` or `(n_layers, dim)`. A sentence without words keeps its place: it
            has the shape `(0, dim)`, and zeros with a `pool`. Tensors with `output="torch"`.

        # Raises

        `ValueError`
            At once, if an argument has another value; when a sentence is read that is neither a string nor a list of
            words, with its number, from 0.
        `ModuleNotFoundError`
            If a sentence is a string and spaCy is not installed.
        """
        return self._checked(sentences, output=output, **arguments)

    def embed_documents(
        self, documents: Iterable[Document], *, whole: bool = False, **arguments: Unpack[EmbedArguments]
    ) -> list[np.ndarray]:
        """
        The vectors of documents, all in memory; for those that do not fit there is `embed_documents_iter`. The
        sentences of all documents share batches.

        # Parameters

        documents
            Each a text, which spaCy's rules split into sentences and words, or a list of sentences as `embed` takes
            them. With a tokenizer of one's own, a text is split by that, and by spaCy's rule for the ends of sentences
            over its words.
        whole
            Whether the biLM reads a document as one sequence, without boundaries between its sentences. Its words then
            know of all others, and are computed one after another, with memory that grows with the length of the
            document; the public biLMs were trained on running text, but the one that ships on single sentences.
        **arguments
            See `embed_iter`. A `pool` is over the words of the whole document; `progress` counts sentences.

        # Returns

        `List[np.ndarray]`
            One array for each document, of shape `(n_words, dim)`, and what `embed_iter` says for `pool` and
            `layers="all"`.

        # Raises

        `ValueError`, `ModuleNotFoundError`
            See `embed_iter`; sentences are counted in their document.
        """
        return list(self.embed_documents_iter(documents, whole=whole, **arguments))

    def embed_documents_iter(
        self, documents: Iterable[Document], *, whole: bool = False, **arguments: Unpack[EmbedArguments]
    ) -> Iterator[np.ndarray]:
        """
        As `embed_documents`, one document after another: in memory are the sentences that are read ahead (see
        `embed_iter`) and the vectors of one document.
        """
        if "output" in arguments:
            raise ValueError("documents have no `output`, and their vectors are arrays of NumPy: use torch.from_numpy")
        pool = arguments.pop("pool", None)
        embed = partial(self.embed_iter, output="numpy", **arguments)
        return embed_documents(embed, documents, whole=whole, pool=pool, tokenizer=self._tokenizer)

    def _checked(
        self,
        sentences: Iterable[Sentence],
        *,
        output: str,
        batch_tokens: int = 4096,
        progress: bool | None = None,
        **selection: Any,
    ) -> Iterator[Any]:
        refuse_no_list(sentences, "sentences")
        if output not in _OUTPUTS:
            raise ValueError(f"output must be one of {', '.join(map(repr, _OUTPUTS))}, but is {output!r}")
        if not isinstance(batch_tokens, int) or isinstance(batch_tokens, bool) or batch_tokens < 1:
            raise ValueError(f"batch_tokens must be a whole number of at least 1, but is {batch_tokens!r}")
        selected = LayerSelection(n_layers=self.n_layers, **selection)
        return self._embedded(sentences, selected, batch_tokens, progress, output == "numpy")

    def _embedded(
        self,
        sentences: Iterable[Sentence],
        selection: LayerSelection,
        batch_tokens: int,
        progress: bool | None,
        as_numpy: bool,
    ) -> Iterator[Any]:
        total = len(sentences) if isinstance(sentences, Sized) else None
        words = (words_of(sentence, index, self._tokenizer) for index, sentence in enumerate(sentences))
        with progress_bar(total, progress, "sentences") as advance:
            for chunk in chunks(words, batch_tokens):
                self._look_at_script(chunk)
                found: list[Any] = [None] * len(chunk)
                for rows in batches_by_length(chunk, batch_tokens):
                    arrays = self._batch([chunk[row] for row in rows], selection, as_numpy)
                    for row, array in zip(rows, arrays, strict=True):
                        found[row] = array
                    advance(len(rows))
                yield from found

    def _look_at_script(self, sentences: list[list[str]]) -> None:
        """Says in the log if the first sentences are of another script than that of the biLM."""
        if self._scripts is None:
            return
        (bilm, seen), self._scripts = self._scripts, None
        sample = " ".join(islice(chain.from_iterable(sentences), _WORDS_LOOKED_AT))
        if notice := script_notice(sample, seen, bilm, "the first sentences"):
            logger.warning(notice)

    # Not around the generator, which would switch gradients off for its caller.
    @torch.no_grad()
    def _batch(self, sentences: list[list[str]], selection: LayerSelection, as_numpy: bool) -> list[Any]:
        vectors = selection(self._layers_of(sentences)).float()
        arrays: list[Any] = list(vectors.cpu().numpy() if as_numpy else vectors)
        if selection.pool is None:
            arrays = [array[..., : len(words), :] for array, words in zip(arrays, sentences, strict=True)]
        # Copies: a part would keep its whole batch in memory.
        return [array.copy() if as_numpy else array.clone() for array in arrays]


def _usable(device: str | torch.device) -> str | torch.device:
    """Checks that a device exists: torch finds a wrong one late, and raises errors of many kinds."""
    try:
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        raise ValueError(
            f"device must be one that torch has here, like 'cpu' or 'cuda', but is {str(device)!r}: {error}"
        ) from error
    return device
