"""ELMo without AllenNLP: sentences in, arrays out."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, Unpack, overload

import numpy as np
import torch
from tqdm import tqdm

from elmo_tasks.bilm.bilm import Bilm, Precision
from elmo_tasks.bilm.layer_cache import CachedBilm, LayerStore, shared_bilm
from elmo_tasks.files.shipped import DEFAULT_BILM
from elmo_tasks.text import Tokenizer
from elmo_tasks.text.sentences import TextOrSentences, sentences_of_text
from elmo_tasks.text.words import Sentence, words_of
from elmo_tasks.vectors.batching import chunks, compute_by_length, embed_groups, in_order, one_ahead
from elmo_tasks.vectors.devices import Device, device_of
from elmo_tasks.vectors.docs import is_doc, sentences_of_doc, words_of_doc
from elmo_tasks.vectors.layers import Layers, LayerSelection, Pool, pooled_words
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["CARD_FIELDS", "Elmo", "Precision"]

CARD_FIELDS = """---
library_name: elmo_tasks
license: unknown  # to fill in
# language: en
tags: [elmo]
---
"""
"""The beginning of a model's README on the Hugging Face hub."""
_CARD = """# {name}

A biLM in the public ELMo format, with {layers} layers of {dim} dimensions: \
`Elmo.from_pretrained("ORG/{name}")`.
"""


# What other models add to sentences. A biLM reads these as words, letter by letter. Not `<S>` and
# `</S>`, the biLM's own boundaries, which are an error.
_PADDING = {"<pad>", "<PAD>", "[pad]", "[PAD]", "__PAD__"}
_BOUNDARIES = {"<s>", "</s>", "<bos>", "<eos>", "<sos>", "<BOS>", "<EOS>", "<SOS>"}
_MARKS = frozenset(_PADDING | _BOUNDARIES | {"[BOS]", "[EOS]", "[CLS]", "[SEP]"})


class VectorOptions(TypedDict, total=False):
    """The arguments of `Elmo.embed_iter`, for the methods that call it."""

    layers: Layers
    weights: Sequence[float] | None
    gamma: float
    pool: Pool | None
    batch_tokens: int | None
    progress: bool | None


class Elmo:
    """
    Vectors of words and sentences from a biLM. Each sentence is embedded independently: sentences
    before it, after it or in the same batch do not change its vectors, except for float32 rounding.

    # Parameters

    bilm
        The biLM, which is not copied. Gradients are never computed; freeze the biLM for full speed,
        as `from_pretrained` and `from_files` do.
    layer_cache
        Keeps the layers that a frozen biLM computes for sentences from one run to the next.
    tokenizer
        How sentences that are strings are split, after normalisation to NFC: by spaCy's rules for a
        language (`"de"`, `"xx"` for any; `None` is English), at `"whitespace"`, or by a function.
        Lists of words are used as they are.
    """

    def __init__(
        self,
        bilm: Bilm,
        *,
        layer_cache: LayerStore | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        self.bilm = bilm
        self._layers_of: Bilm | CachedBilm = bilm
        if layer_cache is not None:
            self._layers_of = CachedBilm(bilm, layer_cache)
        self._tokenizer = tokenizer

    @classmethod
    def from_pretrained(
        cls,
        bilm: str | PathLike[str] = DEFAULT_BILM,
        *,
        device: Device = None,
        precision: Precision | None = None,
        layer_cache: LayerStore | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """
        # Parameters

        bilm
            A name (`"small-open"`, which is included; `"original"` and others, which are downloaded
            on first use), a folder, an archive, or a repository on the Hugging Face hub: see
            `pretrained_files`.
        device
            Where to compute: `"cpu"`, `"cuda"`, `"cuda:1"` and so on. `None`: on a GPU if there is
            one.
        precision
            The precision of matrix products, `"auto"` for the fastest: see `Bilm`. `None`: float32.
        layer_cache, tokenizer
            See the class.
        """
        options_file, weight_file = pretrained_files(bilm)
        return cls.from_files(
            options_file,
            weight_file,
            device=device,
            precision=precision,
            layer_cache=layer_cache,
            tokenizer=tokenizer,
        )

    @classmethod
    def from_files(
        cls,
        options_file: str | PathLike[str],
        weight_file: str | PathLike[str],
        *,
        device: Device = None,
        precision: Precision | None = None,
        layer_cache: LayerStore | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Like `from_pretrained`, for two local files with any names: see `Bilm.from_files`."""
        # Before the files are read, because the device may not exist.
        torch_device = device_of(device)
        bilm = Bilm.from_files(options_file, weight_file, precision=precision or "float32")
        bilm = bilm.requires_grad_(False).to(torch_device)
        return cls(bilm, layer_cache=layer_cache, tokenizer=tokenizer)

    def share(self) -> Self:
        """
        Uses the biLM of the trained models in this process if it is the same one, and the layers
        that they have computed for a sentence. `bilm` may then be neither trained nor moved.
        """
        if self._layers_of is self.bilm:
            shared = shared_bilm(self.bilm)
            self._layers_of = shared
            self.bilm = shared.bilm
        return self

    def save(
        self, folder: str | PathLike[str], *, format: Literal["hdf5", "safetensors"] = "hdf5"
    ) -> None:
        """
        Writes `options.json`, the weights and, if it is missing, a README for the Hugging Face hub.
        `from_pretrained` loads the folder, and after `hf upload org/name FOLDER` it loads
        `"org/name"`.
        """
        folder = Path(folder).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        self.bilm.save(folder / "options.json", folder / f"weights.{format}")
        readme = folder / "README.md"
        if not readme.exists():
            card = _CARD.format(name=folder.name, layers=self.n_layers, dim=self.dim)
            readme.write_text(CARD_FIELDS + card, encoding="utf-8")

    def __repr__(self) -> str:
        layers = f"{self.n_layers} layers of {self.dim} dimensions"
        return f"Elmo({layers}, {self.bilm.kernel} on {self._device})"

    @property
    def _device(self) -> torch.device:
        return next(self.bilm.parameters()).device

    @property
    def dim(self) -> int:
        """The number of units of a vector."""
        return self.bilm.get_output_dim()

    @property
    def n_layers(self) -> int:
        """The number of layers of the biLM: the context-insensitive one and the LSTMs."""
        return self.bilm.num_layers

    @overload
    def embed(
        self,
        sentences: Iterable[Sentence],
        *,
        output: Literal["torch"],
        **options: Unpack[VectorOptions],
    ) -> list[torch.Tensor]: ...

    @overload
    def embed(
        self,
        sentences: Iterable[Sentence],
        *,
        output: Literal["numpy"] = "numpy",
        **options: Unpack[VectorOptions],
    ) -> list[np.ndarray]: ...

    def embed(
        self, sentences: Any, *, output: Any = "numpy", **options: Unpack[VectorOptions]
    ) -> list[Any]:
        """
        The vectors of sentences, all in memory: see `embed_iter` for arguments and results. A
        sentence that is a string is split by the tokenizer, by default spaCy's rules for English.
        Lines of files are split at white space.
        """
        return list(self.embed_iter(sentences, output=output, **options))

    def embed_iter(
        self,
        sentences: Iterable[Sentence],
        *,
        layers: Layers = "mix",
        weights: Sequence[float] | None = None,
        gamma: float = 1.0,
        pool: Pool | None = None,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        output: Literal["numpy", "torch"] = "numpy",
    ) -> Iterator[Any]:
        """
        The vectors of sentences, one sentence at a time, in their order. Only about eight batches
        of sentences and their vectors are in memory.

        # Parameters

        sentences
            Sentences as lists of words, which are used unchanged, or as strings, which the
            tokenizer splits into words. A string is one sentence, and so is a `Doc` or a `Span` of
            spaCy: its words are its tokens in NFC, without white space.
        layers
            `"mix"` is Eq. (1) of the paper, `gamma * sum_j s_j h_j` with `s = softmax(weights)`;
            `"all"` keeps the layers apart; `"top"` is the highest; a number selects that layer (0
            is the context-insensitive one).
        weights
            Of the mix, one number per layer, before the softmax. `None`: the plain average of the
            layers.
        gamma
            Scales the vectors.
        pool
            One vector for each sentence: see `pooled`. `None`: a vector for each word.
        batch_tokens
            Words per batch, including padding and sentence boundaries. A longer sentence is a batch
            by itself. `None`: 4,096 on a CPU and 16,384 on a GPU. A batch that does not fit in its
            memory is halved.
        progress
            Whether to show a bar on stderr. `None`: if stderr is a terminal.
        output
            `"numpy"`, or `"torch"` for tensors on the device of the biLM.

        # Returns

        `Iterator[np.ndarray]`
            The float32 vectors of each sentence, of shape `(n_words, dim)`, or `(dim,)` with a
            `pool`; with `layers="all"`, `(n_layers, n_words, dim)` or `(n_layers, dim)`. A sentence
            without words keeps its place: its shape is `(0, dim)`, and with a `pool` its vector is
            zero.
        """
        sentences = _listed(sentences)
        selection = LayerSelection(
            n_layers=self.n_layers, layers=layers, weights=weights, gamma=gamma, pool=pool
        )
        if not batch_tokens:
            batch_tokens = 4096 if self._device.type == "cpu" else 16384
        return self._embedded(
            sentences,
            selection,
            batch_tokens=int(batch_tokens),
            progress=progress,
            as_numpy=output == "numpy",
        )

    def embed_documents(
        self,
        documents: Iterable[TextOrSentences],
        *,
        whole: bool = False,
        **options: Unpack[VectorOptions],
    ) -> list[np.ndarray]:
        """The vectors of documents, all in memory: see `embed_documents_iter`."""
        return list(self.embed_documents_iter(documents, whole=whole, **options))

    def embed_documents_iter(
        self,
        documents: Iterable[TextOrSentences],
        *,
        whole: bool = False,
        **options: Unpack[VectorOptions],
    ) -> Iterator[np.ndarray]:
        """
        The vectors of documents, one document at a time. The sentences of all documents share
        batches.

        # Parameters

        documents
            Each is a text, which is split into words by the tokenizer and into sentences by spaCy's
            rule for their ends; or a list of sentences; or a `Doc` of spaCy with its own tokens and
            sentences.
        whole
            Whether the biLM reads a document as one sequence, without boundaries between its
            sentences. Memory grows with the length of the document. The public biLMs were trained
            on running text, `small-open` on single sentences.
        **options
            See `embed_iter`. `pool` pools the words of the whole document.

        # Returns

        `Iterator[np.ndarray]`
            One array for each document, of shape `(n_words, dim)`, or as in `embed_iter` with a
            `pool` or `layers="all"`.
        """
        pool = options.pop("pool", None)
        # Only to raise an error for a wrong `pool` now, not after the first document.
        LayerSelection(n_layers=self.n_layers, pool=pool)
        listed = _listed(documents)

        def groups() -> Iterator[tuple[None, list[list[str]]]]:
            for document in listed:
                sentences = self._sentences_of(document)
                if whole:
                    sentences = [list(chain.from_iterable(sentences))]
                yield None, sentences

        arrays = (array for _, array in embed_groups(partial(self.embed_iter, **options), groups()))
        if pool is None:
            return arrays
        return (pooled_words(array, pool) for array in arrays)

    def _sentences_of(self, document: TextOrSentences) -> list[list[str]]:
        if isinstance(document, str):
            return sentences_of_text(document, self._tokenizer or "en")
        if is_doc(document):
            return sentences_of_doc(document)
        # A missing value, such as NaN, is an error of `_words`.
        sentences = document if isinstance(document, Iterable) else [document]
        return [self._words(sentence) for sentence in sentences]

    def _embedded(
        self,
        sentences: Iterable[Sentence],
        selection: LayerSelection,
        *,
        batch_tokens: int,
        progress: bool | None,
        as_numpy: bool,
    ) -> Iterator[Any]:
        n_sentences = len(sentences) if isinstance(sentences, Sized) else None
        # `None`: unless stderr is a terminal.
        is_hidden = None if progress is None else not progress
        batches = self._batches(self._words_of_all(sentences), selection, batch_tokens, as_numpy)
        if self._device.type == "cuda":
            # The next batch is prepared before the results of this one are waited for.
            batches = one_ahead(batches)
        with tqdm(total=n_sentences, unit="sentence", disable=is_hidden) as bar:
            for array in in_order(_numbered_arrays(batches)):
                bar.update()
                yield array

    def _batches(
        self,
        sentences: Iterable[list[str]],
        selection: LayerSelection,
        batch_tokens: int,
        as_numpy: bool,
    ) -> Iterator[tuple[list[int], "_BatchVectors"]]:
        """
        The numbers of the sentences of each batch, and their vectors, which may not have arrived
        yet.
        """
        n_before = 0
        for chunk in chunks(sentences, batch_tokens):
            compute = partial(self._vectors, chunk, selection=selection, as_numpy=as_numpy)
            for rows, vectors in compute_by_length(compute, chunk, batch_tokens, "batch_tokens"):
                yield [n_before + row for row in rows], vectors
            n_before += len(chunk)

    def _words_of_all(self, sentences: Iterable[Sentence]) -> Iterator[list[str]]:
        for number, sentence in enumerate(sentences):
            try:
                yield self._words(sentence)
            except ValueError as error:
                raise ValueError(f"{error} (sentence {number})") from None

    def _words(self, sentence: Sentence) -> list[str]:
        if is_doc(sentence):
            sentence = words_of_doc(sentence)
        words = words_of(sentence, self._tokenizer)
        boundaries = self.bilm.word_rows.boundaries
        if not set(boundaries).isdisjoint(words):
            marks = " or ".join(boundaries)
            raise ValueError(f"expected no {marks}, which this biLM adds to {words!r:.200}")
        warn_of_marks(words)
        return words

    # Not on the generator, which would switch gradients off for its caller.
    @torch.no_grad()
    def _vectors(
        self, chunk: list[list[str]], rows: list[int], selection: LayerSelection, as_numpy: bool
    ) -> "_BatchVectors":
        sentences = [chunk[row] for row in rows]
        vectors = selection(self._layers_of(sentences)).float()
        stream = None
        if vectors.is_cuda:
            stream = torch.cuda.current_stream(vectors.device)
        if as_numpy:
            # From a GPU to pinned memory, before the kernels of the next batch.
            vectors = vectors.to("cpu", non_blocking=stream is not None)
        arrived = None
        if stream is not None:
            arrived = stream.record_event()
        lengths = None
        if selection.pool is None:
            lengths = list(map(len, sentences))
        return _BatchVectors(vectors, lengths, as_numpy=as_numpy, arrived=arrived)


@dataclass(frozen=True)
class _BatchVectors:
    """
    The vectors of a batch, of shape `(batch_size, ..., dim)`, which a GPU may still compute and
    copy.
    """

    vectors: torch.Tensor
    lengths: list[int] | None
    """Words of each sentence, unless they were pooled."""
    as_numpy: bool
    arrived: torch.cuda.Event | None

    def arrays(self) -> list[Any]:
        """The vectors of each sentence, once they have arrived."""
        if self.arrived is not None:
            self.arrived.synchronize()
        batch: Any = self.vectors
        if self.as_numpy:
            batch = batch.numpy()
        views = list(batch)
        if self.lengths is not None:
            views = [
                view[..., :n_words, :] for view, n_words in zip(views, self.lengths, strict=True)
            ]
        # Copies, because a view would keep its whole batch in memory.
        if self.as_numpy:
            return [view.copy() for view in views]
        return [view.clone() for view in views]


def _numbered_arrays(
    batches: Iterable[tuple[list[int], _BatchVectors]],
) -> Iterator[tuple[int, Any]]:
    for numbers, batch in batches:
        yield from zip(numbers, batch.arrays(), strict=True)


def _listed(texts: Iterable[Any]) -> Iterable[Any]:
    """
    Texts as an iterable: a single text becomes a list. A table is an error, because it would be
    read as the names of its columns.
    """
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise ValueError(
            "expected a list of texts, got a table: give one of its columns, as table['text']"
        )
    if getattr(texts, "shape", ())[1:] == (1,):
        # A column of an array, which would be read as sentences of one word.
        texts = np.asarray(texts)[:, 0]
    if isinstance(texts, str) or is_doc(texts):
        return [texts]
    return texts


def warn_of_marks(words: Sequence[str]) -> None:
    """Warns of words with which other models pad, begin or end sentences."""
    if not _MARKS.isdisjoint(words):
        mark = next(word for word in words if word in _MARKS)
        text = f"{mark!r} is embedded as a word, and changes the vectors of the words beside it"
        hint = "sentences may have different lengths, so leave out padding and boundaries"
        warnings.warn(f"{text}: {hint}", stacklevel=2)
