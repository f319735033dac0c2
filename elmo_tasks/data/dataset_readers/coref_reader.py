"""Dataset reader of coreference, in the format of CoNLL-2012."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import ListField, MetadataField, TextField

from elmo_tasks.data.coref_conll import read_documents
from elmo_tasks.data.dataset_readers.task_reader import TaskReader

__all__ = ["CorefReader"]


@DatasetReader.register("elmo_coref")
class CorefReader(TaskReader):
    """
    Reads documents in the columns of CoNLL-2012: see `elmo_tasks.data.coref_conll.read_documents`. AllenNLP's `coref`
    reads neither speakers nor genres, and gives one text without the ends of its sentences.

    # Parameters

    remove_singleton_clusters : `bool`
        Whether clusters of one mention are dropped, as OntoNotes has none. The model never predicts one, so in the
        scores of a corpus that has them, LitBank for example, it misses them all.
    """

    def __init__(self, *, remove_singleton_clusters: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._remove_singleton_clusters = remove_singleton_clusters

    def _read(self, file_path: str) -> Iterator[Instance]:
        documents = read_documents(cached_path(file_path), with_clusters=self.reads_gold)
        for document in self.shard_iterable(documents):
            inputs = dict(vars(document))
            if not self.reads_gold:
                del inputs["clusters"]
            yield self.text_to_instance(**inputs)

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
        """
        metadata: dict[str, Any] = {
            "document": name,
            "part": part,
            "genre": name[:2] if genre is None else genre,
            "sentences": [list(words) for words in sentences],
            "speakers": [list(row) for row in speakers or [["-"] * len(words) for words in sentences]],
        }
        if clusters is not None:
            mentions = [[(start, end) for start, end in cluster] for cluster in clusters]
            metadata["clusters"] = [each for each in mentions if len(each) > 1 or not self._remove_singleton_clusters]
        # A list of fields must not be empty.
        texts = [TextField([Token(word) for word in words]) for words in sentences or [[]]]
        return Instance({"tokens": ListField(texts), "metadata": MetadataField(metadata)})
