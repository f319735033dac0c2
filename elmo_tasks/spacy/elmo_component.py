"""A component for spaCy pipelines: `nlp.add_pipe("elmo")`."""

import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token

from elmo_tasks.files.shipped import DEFAULT_BILM
from elmo_tasks.spacy.pipeline import PipelineBilm, refuse_settings, sentences_in, with_white_space
from elmo_tasks.text import as_words
from elmo_tasks.vectors.batching import embed_groups
from elmo_tasks.vectors.elmo import Precision, VectorOptions
from elmo_tasks.vectors.layers import Layers, Pool, pooled_words

__all__ = ["ElmoComponent"]

# spaCy's key format for extension attributes, so tools that list these attributes find it.
_KEY = ("._.", "elmo", None, None)


class ElmoComponent(PipelineBilm, Pipe):
    """
    Sets `token._.elmo`, `span._.elmo` and `doc._.elmo` in the documents of a pipeline. The vectors
    are in `doc.user_data`, which spaCy copies, writes to files and sends between processes.

    A `Doc` is embedded sentence by sentence if a parser or a `sentencizer` before this component
    has set sentence boundaries; otherwise as one sentence. Words are normalised to NFC. White space
    is not embedded; its vectors are zero.

    # Parameters

    nlp, name
        The pipeline and the name in it, which spaCy passes to every factory.
    bilm, precision
        See `Elmo.from_pretrained`. The biLM is loaded on first use.
    device
        `None`: the GPU of `spacy.require_gpu` or `prefer_gpu`, or else the CPU.
    layers, weights, gamma, batch_tokens
        See `Elmo.embed_iter`.
    pool
        One vector for a span or a document: see `pooled`. `None`: one per token, of shape
        `(n_tokens, dim)`.
    similarity
        Whether `similarity` and `vector` of tokens, spans and documents use ELMo's vectors too.
        spaCy does not save hooks: a `Doc` read from a file has spaCy's own `similarity`.
    save_weights
        Whether `nlp.to_disk` and `nlp.to_bytes` write the weights, which `spacy.load` then needs.
        `False`: they write only the name, `bilm`.
    """

    def __init__(
        self,
        nlp: Language | None = None,
        name: str = "elmo",
        *,
        bilm: str = DEFAULT_BILM,
        device: str | None = None,
        precision: Precision | None = None,
        layers: Layers = "mix",
        weights: list[float] | None = None,
        gamma: float = 1.0,
        pool: Pool | None = "mean",
        batch_tokens: int | None = None,
        similarity: bool = False,
        save_weights: bool = True,
    ) -> None:
        super().__init__(bilm, save_weights=save_weights, device=device, precision=precision)
        self.name = name
        self.pool = pool
        self.similarity = similarity
        self._options = VectorOptions(
            layers=layers, weights=weights, gamma=gamma, batch_tokens=batch_tokens, progress=False
        )
        if nlp is not None and _has_elmo(nlp):
            warnings.warn(
                "a pipeline with two components 'elmo': '._.elmo' has the vectors of the last",
                stacklevel=2,
            )

    def __call__(self, doc: Doc, **settings: Any) -> Doc:
        for embedded in self.pipe([doc], **settings):
            return embedded
        # spaCy's error handler has taken the document, and did not raise.
        return doc

    def pipe(
        self, stream: Iterable[Doc], *, batch_size: int | None = None, **settings: Any
    ) -> Iterator[Doc]:
        """
        Embeds documents as they come. Their sentences are batched by length. Up to eight batches of
        `batch_tokens`, and at most `batch_size` documents, are read before the first one is
        embedded.
        """
        refuse_settings(self.name, settings)
        embed = partial(self.elmo.share().embed_iter, **self._options)
        for doc, vectors in embed_groups(embed, self._groups(stream), batch_size):
            self._keep(doc, vectors)
            yield doc

    def _groups(self, stream: Iterable[Doc]) -> Iterator[tuple[Doc, list[list[str]]]]:
        for doc in stream:
            try:
                sentences = []
                for sentence in sentences_in(doc):
                    sentences.append(as_words([word.text for word in sentence]))
                yield doc, sentences
            except ValueError as error:
                self.get_error_handler()(self.name, self, [doc], error)

    def _keep(self, doc: Doc, words: np.ndarray) -> None:
        user_data: dict[Any, Any] = doc.user_data
        # Shape of the vectors: (n_tokens, dim) or (n_layers, n_tokens, dim)
        user_data[_KEY] = [self.pool, with_white_space(doc, words)]
        if self.similarity:
            for hooks in (doc.user_hooks, doc.user_span_hooks, doc.user_token_hooks):
                # No hook for the norm: spaCy computes it from the vector, and a span would return
                # its vector for it.
                hooks.update(vector=_elmo_of, has_vector=_has_vector, similarity=_similarity)


# The entries of the config are the keyword arguments.
Language.factory(
    "elmo",
    assigns=["doc._.elmo", "span._.elmo", "token._.elmo"],
    default_config=ElmoComponent.__init__.__kwdefaults__ or {},
    func=ElmoComponent,
)


def _has_elmo(nlp: Language) -> bool:
    return any(isinstance(component, ElmoComponent) for _, component in nlp.pipeline)


def _elmo_of(item: Doc | Span | Token) -> np.ndarray:
    user_data: dict[Any, Any] = item.doc.user_data
    pool, doc_vectors = user_data.get(_KEY, (None, None))
    if doc_vectors is None or doc_vectors.shape[-2] != len(item.doc):
        raise ValueError(
            "a Doc without vectors of 'elmo', or with tokens merged or split after it: run a "
            "pipeline with 'elmo' at its end (make_doc, as_doc, from_docs and a DocBin without "
            "user data keep no vectors)"
        )
    vectors: np.ndarray = doc_vectors
    if isinstance(item, Token):
        return vectors[..., item.i, :]
    if isinstance(item, Span):
        vectors = vectors[..., item.start : item.end, :]
    if pool is None:
        return vectors
    is_word = np.array([not token.is_space for token in item], dtype=bool)
    return pooled_words(np.ascontiguousarray(vectors[..., is_word, :]), pool)


def _has_vector(item: Doc | Span | Token) -> bool:
    return True


def _similarity(one: Doc | Span | Token, other: Doc | Span | Token) -> float:
    """The cosine; 0 if either has no words."""
    one_vector = _elmo_of(one)
    other_vector = _elmo_of(other)
    norms = float(np.linalg.norm(one_vector) * np.linalg.norm(other_vector))
    if norms == 0:
        return 0.0
    return float(one_vector @ other_vector) / norms


# spaCy imports this module, an entry point, with the first pipeline, so a `Doc` read from a file
# has the attribute too.
for _owner in (Doc, Span, Token):
    if not _owner.has_extension("elmo"):
        _owner.set_extension("elmo", getter=_elmo_of)
