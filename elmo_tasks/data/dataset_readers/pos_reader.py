"""Dataset reader for parts of speech in CoNLL-U, the format of Universal Dependencies."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import conllu
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token
from allennlp.data.fields import SequenceLabelField

from elmo_tasks.data.dataset_readers.task_reader import TaskReader, blocks, located, sentence_fields

__all__ = ["PosReader", "conllu_sentences"]

# Columns that are kept as text, because parsing them would take half of the time.
_UNPARSED = dict.fromkeys(("feats", "head", "deprel", "deps", "misc"), lambda line, column: line[column])


@DatasetReader.register("elmo_pos")
class PosReader(TaskReader):
    """
    Reads the words of CoNLL-U files and one of their two tag columns. A multiword token is read as the words that it
    represents, because these have the tags.

    AllenNLP's `universal_dependencies` reads syntax for a different model.

    # Parameters

    tags : `Literal["upos", "xpos"]`
        Which column: the 17 universal tags, or the tags of the language, which in English treebanks are the Penn
        Treebank's, as in the paper.
    """

    def __init__(self, *, tags: Literal["upos", "xpos"] = "upos", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._tags = tags

    def _read(self, file_path: str) -> Iterator[Instance]:
        path = cached_path(file_path)
        for number, sentence in self.shard_iterable(conllu_sentences(path)):
            tags = [word[self._tags] for word in sentence] if self.reads_gold else None
            with located(path, number):
                instance = self.text_to_instance([word["form"] for word in sentence], tags)
            yield instance

    def text_to_instance(self, words: Sequence[str | Token], tags: Sequence[str] | None = None) -> Instance:
        """`tokens`, `metadata` (the words), and `tags` if tags are given."""
        fields = sentence_fields(words)
        if tags is not None:
            if not {None, "_"}.isdisjoint(tags):
                raise ValueError("expected a tag for each word, got '_'")
            fields["tags"] = SequenceLabelField(list(tags), fields["tokens"])
        return Instance(fields)


def conllu_sentences(path: str) -> Iterator[tuple[int, list[conllu.Token]]]:
    """
    The sentences of a CoNLL-U file, each with the number of its first line, and the ten columns of each word by name.
    Multiword tokens and empty nodes are skipped.
    """
    for block in blocks(path):
        number = block[0][0]
        with located(path, number):
            try:
                sentences = conllu.parse("\n".join(line for _, line in block), field_parsers=_UNPARSED)
            except conllu.exceptions.ParseException as error:
                raise ValueError(str(error)) from error
            for sentence in sentences:
                if words := [word for word in sentence if isinstance(word["id"], int)]:
                    yield number, words
