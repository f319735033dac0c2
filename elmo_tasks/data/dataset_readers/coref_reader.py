"""Dataset reader of coreference, in the format of CoNLL-2012."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import ListField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.formats.coref_conll import CorefDocument, read_documents

__all__ = ["CorefReader"]

logger = logging.getLogger(__name__)


@DatasetReader.register("elmo_coref")
class CorefReader(DatasetReader):
    """
    Reads documents in the columns of CoNLL-2012: see `elmo_tasks.data.formats.coref_conll.read_documents`.

    Registered as a `DatasetReader` with name "elmo_coref". AllenNLP's `coref` reads neither speakers nor genres, gives
    one text without the ends of its sentences, and does not name the broken line.

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    remove_singleton_clusters : `bool`
        Whether clusters of one mention are dropped, as OntoNotes has none. The model never predicts one, so in the
        scores of a corpus that has them, LitBank for example, it misses them all.
    """

    def __init__(
        self,
        token_indexers: Optional[dict[str, TokenIndexer]] = None,
        remove_singleton_clusters: bool = False,
        **kwargs: object,
    ) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._remove_singleton_clusters = remove_singleton_clusters

    def _read(self, file_path: str) -> Iterator[Instance]:
        for document in self.shard_iterable(_with_clusters(cached_path(file_path))):
            yield self.text_to_instance(**vars(document))

    def text_to_instance(
        self,
        sentences: Sequence[Sequence[str]],
        speakers: Sequence[Sequence[str]] | None = None,
        clusters: Iterable[Iterable[tuple[int, int]]] | None = None,
        name: str = "",
        part: int = 0,
        genre: str | None = None,
    ) -> Instance:
        """
        # Parameters

        sentences : `Sequence[Sequence[str]]`
            The words of a document.
        speakers : `Sequence[Sequence[str]]`, optional
            The speaker of each word.
        clusters : `Iterable[Iterable[Tuple[int, int]]]`, optional
            First and last words of the mentions of each cluster, counted from the beginning of the document.
        name, part : `str`, `int`, optional
            Name and part of the document.
        genre : `str`, optional
            Two letters as in OntoNotes, by default the first two of the name.

        # Returns

        `Instance`
            `tokens`, a list of sentences, and `metadata`.

        # Raises

        `ValueError`
            If there are not as many speakers as words, or a mention is not in the document.
        """
        document = CorefDocument(name, part, [list(words) for words in sentences])
        document.speakers = [list(row) for row in speakers or [["-"] * len(words) for words in sentences]]
        lengths, n_speakers = ([len(row) for row in rows] for rows in (document.sentences, document.speakers))
        if lengths != n_speakers:
            raise ValueError(
                f"every word must have a speaker, but the sentences have {lengths!s:.100} words and "
                f"{n_speakers!s:.100} speakers"
            )
        metadata: dict[str, Any] = {
            "document": name,
            "part": part,
            "genre": name[:2] if genre is None else genre,
            "sentences": document.sentences,
            "speakers": document.speakers,
        }
        if clusters is not None:
            metadata["clusters"] = self._checked(clusters, sum(lengths))
        # A list of fields must not be empty.
        texts = [TextField([Token(word) for word in words]) for words in document.sentences or [[]]]
        return Instance({"tokens": ListField(texts), "metadata": MetadataField(metadata)})

    def _checked(self, clusters: Iterable[Iterable[tuple[int, int]]], n_words: int) -> list[list[tuple[int, int]]]:
        checked = [[(start, end) for start, end in cluster] for cluster in clusters]
        for start, end in (mention for cluster in checked for mention in cluster):
            if not 0 <= start <= end < n_words:
                raise ValueError(
                    f"a mention must begin and end in a document, which has {n_words} words, but is {[start, end]}"
                )
        return [cluster for cluster in checked if len(cluster) > 1 or not self._remove_singleton_clusters]

    def apply_token_indexers(self, instance: Instance) -> None:
        for text in instance["tokens"]:
            text.token_indexers = self._token_indexers


def _with_clusters(path: str) -> Iterator[CorefDocument]:
    """The documents of a file, of which at least one should have a cluster."""
    has_clusters = False
    for document in read_documents(path):
        has_clusters = has_clusters or bool(document.clusters)
        yield document
    if not has_clusters:
        logger.warning("%s: no document has a cluster of coreference: there are no scores of it", path)
