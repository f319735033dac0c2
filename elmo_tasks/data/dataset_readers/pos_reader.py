"""Dataset reader of parts of speech, in CoNLL-U, the format of Universal Dependencies."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import conllu
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import Field, MetadataField, SequenceLabelField, TextField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, blocks, located

__all__ = ["PosReader", "conllu_sentences"]

logger = logging.getLogger(__name__)


@DatasetReader.register("elmo_pos")
class PosReader(TaskReader):
    """
    Reads the words of CoNLL-U files and one of their two columns of tags. A multiword token is read as the words that
    it stands for, which have the tags. A file without tags in the column is for prediction.

    AllenNLP's `universal_dependencies` reads syntax for a different model.

    # Parameters

    tags : `Literal["upos", "xpos"]`
        Which column: the 17 universal tags, or the language's own; in English treebanks these are the Penn Treebank's,
        as in the paper.
    """

    def __init__(self, *, tags: Literal["upos", "xpos"] = "upos", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._tags = tags

    def _read(self, file_path: str) -> Iterator[Instance]:
        for words, tags in self.shard_iterable(self._tagged(cached_path(file_path))):
            yield self.text_to_instance(words, tags)

    def _tagged(self, path: str) -> Iterator[tuple[list[str], list[str] | None]]:
        has_tags: bool | None = None
        for number, sentence in conllu_sentences(path):
            words = [word["form"] for word in sentence]
            tags = [word[self._tags] for word in sentence] if self.reads_gold else [None]
            has_tags = tags[0] not in (None, "_") if has_tags is None else has_tags
            if has_tags and not {None, "_"}.isdisjoint(tags):
                raise ValueError(f"expected a tag for each word in column {self._tags}: {path}, line {number}")
            yield words, tags if has_tags else None
        if self.reads_gold and not has_tags:
            logger.warning("%s has no tags in column %s", path, self._tags)

    def text_to_instance(self, words: Sequence[str | Token], tags: Sequence[str] | None = None) -> Instance:
        """
        # Parameters

        words : `Sequence[Union[str, Token]]`
            A sentence.
        tags : `Sequence[str]`, optional
            A tag for each word.

        # Returns

        `Instance`
            `tokens`, `metadata` (the words), and `tags` if tags are given.
        """
        tokens = [word if isinstance(word, Token) else Token(word) for word in words]
        text = TextField(tokens)
        fields: dict[str, Field] = {"tokens": text, "metadata": MetadataField({"words": [t.text for t in tokens]})}
        if tags is not None:
            fields["tags"] = SequenceLabelField(list(tags), text)
        return Instance(fields)


def conllu_sentences(path: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """
    The sentences of a CoNLL-U file: the number of the first line, and the ten columns of each word by their names.
    Multiword tokens and empty nodes are skipped.
    """
    for block in blocks(path):
        number = block[0][0]
        with located(path, number):
            try:
                sentences = conllu.parse("\n".join(line for _, line in block))
            except conllu.exceptions.ParseException as error:
                raise ValueError(str(error)) from error
            for sentence in sentences:
                if words := [word for word in sentence if isinstance(word["id"], int)]:
                    yield number, words
