"""A component for pipelines of spaCy: `nlp.add_pipe("elmo")`."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import srsly
from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.vectors.documents import embed_groups, pooled_words
from elmo_tasks.vectors.elmo import Elmo, EmbedArguments, Precision
from elmo_tasks.vectors.layer_selection import Layers
from elmo_tasks.vectors.pooling import POOLS, Pool

__all__ = ["ElmoComponent"]

# Not in `doc.user_data`, which belongs to the user: an array is freed with its Doc. The values are the pool of the
# pipeline and the vectors of all tokens, of shape (..., n_tokens, dim).
_VECTORS: WeakKeyDictionary[Doc, tuple[Pool | None, np.ndarray]] = WeakKeyDictionary()
_FILES = ("options.json", "weights.hdf5")


class ElmoComponent:
    """
    Sets `token._.elmo`, `span._.elmo` and `doc._.elmo` in the documents of a pipeline. The vectors are kept outside the
    `Doc` and not in its `user_data`: copies of a `Doc`, and those from files or other processes (`n_process`), have no
    vectors, and reading them is an error; unless `in_user_data` is set.

    A `Doc` is embedded sentence by sentence if its sentences are known, by a parser or a `sentencizer` before this
    component; otherwise as one sentence. White space is not embedded, and has zeros.

    Registered as a factory of spaCy's with name "elmo".

    # Parameters

    nlp
        The pipeline, which spaCy gives to every factory.
    name
        Its name in the pipeline.
    bilm
        A name or a folder: see `Elmo.from_pretrained`. It is loaded at the first use.
    device, precision
        See `Elmo.from_pretrained`.
    layers, weights, gamma, batch_tokens
        See `Elmo.embed_iter`.
    pool
        One vector for a span or a document in place of those of its tokens: see `pooled`. `None`: all of them, of shape
        `(n_tokens, dim)`.
    whole_document
        Whether a document is one sequence to the biLM, whatever its sentences.
    similarity
        Whether `similarity` and `vector` of tokens, spans and documents are those of ELMo too. It needs a `pool`, and
        `layers` other than `"all"`. Documents from files or other processes have spaCy's own again, also with
        `in_user_data`: spaCy does not write what sets them.
    in_user_data
        Whether the vectors of a document are kept in its `user_data`, which spaCy writes to files and sends from
        process to process.
    save_weights
        Whether `nlp.to_disk` and `nlp.to_bytes` write the weights, and `spacy.load` needs them (`False`: only the name,
        `bilm`).

    # Raises

    `ValueError`
        If `pool` has another value, or does not allow `similarity`; or the pipeline has such a component.
    """

    def __init__(
        self,
        nlp: Language | None = None,
        name: str = "elmo",
        *,
        bilm: str = "small-open",
        device: str | None = None,
        precision: Precision | None = None,
        layers: Layers = "mix",
        weights: list[float] | None = None,
        gamma: float = 1.0,
        pool: Pool | None = "mean",
        batch_tokens: int = 4096,
        whole_document: bool = False,
        similarity: bool = False,
        in_user_data: bool = False,
        save_weights: bool = True,
    ) -> None:
        if pool is not None and pool not in POOLS:
            raise ValueError(f"pool must be one of {', '.join(map(repr, POOLS))}, or None, but is {pool!r}")
        if similarity and (pool is None or layers == "all"):
            raise ValueError(
                f"similarity needs one vector for each document, but pool is {pool!r} and layers {layers!r}: give a "
                "pool, and layers other than 'all'"
            )
        components = [] if nlp is None else nlp.components
        others = [other for other, component in components if isinstance(component, ElmoComponent)]
        if others:
            raise ValueError(
                f"one component of a pipeline alone can set doc._.elmo, but '{name}' comes after '{others[0]}': remove "
                "one of them; for several layers there is layers='all'"
            )
        self.name = name
        self.bilm = bilm
        self.pool = pool
        self.whole_document = whole_document
        self.similarity = similarity
        self.in_user_data = in_user_data
        self.save_weights = save_weights
        self._device = device
        self._precision = precision
        self._arguments: EmbedArguments = {
            "layers": layers,
            "weights": weights,
            "gamma": gamma,
            "batch_tokens": batch_tokens,
            "progress": False,
        }
        self._elmo: Elmo | None = None
        _set_extensions()

    @property
    def elmo(self) -> Elmo:
        """The biLM, loaded at the first use."""
        # Not before: a pipeline from the disk brings the weights, and the folder that it was made with may be gone.
        if self._elmo is None:
            self._elmo = Elmo.from_pretrained(self.bilm, device=self._device, precision=self._precision)
        return self._elmo

    def __call__(self, doc: Doc) -> Doc:
        """Embeds a document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 0) -> Iterator[Doc]:
        """
        Embeds documents as they come. Their sentences are put into batches by their length; `batch_size`, which spaCy
        gives, is ignored. In memory are about eight batches of `batch_tokens`, and one document.
        """
        groups = ((doc, self._sentences(doc)) for doc in stream)
        for doc, vectors in embed_groups(partial(self.elmo.embed_iter, **self._arguments), groups):
            self._keep(doc, vectors)
            yield doc

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """
        Writes the weights to a folder, unless `save_weights` is off; the rest is in spaCy's config. What is there stays
        until the new files are whole.
        """
        if not self.save_weights:
            return
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            self.elmo.bilm.save(*(stack.enter_context(atomic_file(folder / file)) for file in _FILES))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "ElmoComponent":
        """
        Reads what `to_disk` wrote.

        # Raises

        `FileNotFoundError`
            If a file is missing, unless `save_weights` is off. The biLM that the name means here may be another one.
        `ValueError`
            If a file is damaged.
        """
        if not self.save_weights:
            return self
        files = [Path(path) / file for file in _FILES]
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(
                    f"the component '{self.name}' was saved with its weights, but '{path}' has no {file.name}: save "
                    f"the pipeline again; or let the name '{self.bilm}' say which biLM it is, with the argument "
                    f'config={{"components.{self.name}.save_weights": False}} of spacy.load'
                )
        self._elmo = Elmo.from_files(*files, device=self._device, precision=self._precision)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files that `to_disk` writes; none if `save_weights` is off."""
        with TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = [path for file in _FILES if (path := Path(folder, file)).exists()]
            content: bytes = srsly.msgpack_dumps({path.name: path.read_bytes() for path in files})
            return content

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "ElmoComponent":
        """
        Reads what `to_bytes` gave.

        # Raises

        `ValueError`
            If there are no weights, unless `save_weights` is off; or a file is damaged.
        """
        if not self.save_weights:
            return self
        files = srsly.msgpack_loads(data)
        if set(files) != set(_FILES):
            raise ValueError(
                f"the component '{self.name}' needs weights, but these bytes have none: give those of a pipeline whose "
                "save_weights is on, or turn it off here too, so that the name says which biLM it is"
            )
        with TemporaryDirectory() as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            return self.from_disk(folder)

    def _sentences(self, doc: Doc) -> list[list[str]]:
        spans = doc.sents if doc.has_annotation("SENT_START") and not self.whole_document else [doc[:]]
        return [[token.text for token in span if not token.is_space] for span in spans]

    def _keep(self, doc: Doc, words: np.ndarray) -> None:
        is_word = np.array([not token.is_space for token in doc], dtype=bool)
        # Shape: (n_tokens, dim) or (n_layers, n_tokens, dim)
        vectors = np.zeros((*words.shape[:-2], len(doc), words.shape[-1]), words.dtype)
        vectors[..., is_word, :] = words
        _VECTORS[doc] = (self.pool, vectors)
        if self.in_user_data:
            user_data: dict[Any, Any] = doc.user_data
            user_data[_KEY] = [self.pool, vectors]
        if self.similarity:
            for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
                # No hook for the norm: spaCy computes it from the vector, and a span would return its vector for it.
                hooks.update(vector=_elmo_of, has_vector=_has_elmo, similarity=_similarity)


# The entries of the config are the keyword arguments.
Language.factory(
    "elmo",
    assigns=["doc._.elmo", "span._.elmo", "token._.elmo"],
    default_config=ElmoComponent.__init__.__kwdefaults__ or {},
    func=ElmoComponent,
)

# In spaCy's form for extension attributes, so that tools that list them find it.
_KEY = ("._.", "elmo", None, None)


def _set_extensions() -> None:
    for kind in (Doc, Span, Token):
        if not kind.has_extension("elmo"):
            kind.set_extension("elmo", getter=_elmo_of)
        elif kind.get_extension("elmo")[2] is not _elmo_of:
            raise ValueError(
                f"the extension {kind.__name__}._.elmo must be this component's, but something else has set it: remove "
                f"it with {kind.__name__}.remove_extension('elmo')"
            )


def _kept(doc: Doc) -> tuple[Pool | None, np.ndarray]:
    user_data: dict[Any, Any] = doc.user_data
    pool, vectors = _VECTORS.get(doc) or user_data.get(_KEY) or (None, None)
    if vectors is None:
        raise ValueError(
            "this Doc has no ELMo vectors: it was not made by a pipeline with 'elmo', or is a copy, or comes from a "
            "file or another process. Remedy: doc = nlp.get_pipe('elmo')(doc); or in_user_data=True in the config, for "
            "copies, files and processes, though not for parts of a Doc or several Docs that were made one"
        )
    if vectors.shape[-2] != len(doc):
        raise ValueError(
            f"a Doc must have the tokens that were embedded, but had {vectors.shape[-2]} and has {len(doc)}: put "
            "'elmo' after the components that merge or split tokens"
        )
    return pool, vectors


def _elmo_of(item: Doc | Span | Token) -> np.ndarray:
    pool, vectors = _kept(item.doc)
    if isinstance(item, Token):
        token: np.ndarray = vectors[..., item.i, :]
        return token
    start, end = (item.start, item.end) if isinstance(item, Span) else (0, len(item))
    part = vectors[..., start:end, :]
    if pool is None:
        return part
    is_word = np.array([not token.is_space for token in item], dtype=bool)
    return pooled_words(np.ascontiguousarray(part[..., is_word, :]), pool)


def _has_elmo(item: Doc | Span | Token) -> bool:
    return True


def _similarity(one: Doc | Span | Token, other: Doc | Span | Token) -> float:
    """The cosine; 0 if one has no words."""
    if not isinstance(other, Doc | Span | Token):
        raise ValueError(
            f"similarity must be asked of a Doc, a Span or a Token, but of a {type(other).__name__}, a word without a "
            "sentence, there is no ELMo vector: give the token of a Doc"
        )
    ours, theirs = _elmo_of(one), _elmo_of(other)
    norms = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    return float(ours @ theirs) / norms if norms else 0.0
