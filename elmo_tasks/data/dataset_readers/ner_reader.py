"""Dataset reader of named entities, in the columns of CoNLL-2003."""

import re
from collections.abc import Iterator, Sequence
from typing import Optional

from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import Field, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.fields import SpanTagsField
from elmo_tasks.data.formats.columns import columns_of
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.tags import spans_to_bioul, tags_to_spans

__all__ = ["NerReader"]

_TAG = re.compile(r"O|[BIELSU]-\S+")
# The end of a line of a table with commas.
_TAG_AFTER_COMMA = re.compile(rf"[,;]\"?(?:{_TAG.pattern})$")


@DatasetReader.register("elmo_ner")
class NerReader(DatasetReader):
    """
    Reads files with one word on each line and an empty line after each sentence. The first column is the word, the last
    its tag; columns between them (part of speech, chunk) are not read. A file of words alone has no tags, for
    prediction.

    Tags may be in any scheme that marks entities from the inside (IOB1, BIO, BIOES, BIOUL); they are converted to
    BIOUL, which the CRF of the paper's model uses (section A.7).

    Registered as a `DatasetReader` with name "elmo_ner". AllenNLP's `conll2003` needs exactly four columns, reads no
    file without tags, and does not name the broken line.

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    """

    def __init__(self, token_indexers: Optional[dict[str, TokenIndexer]] = None, **kwargs: object) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}

    def _read(self, file_path: str) -> Iterator[Instance]:
        for words, tags, where in self.shard_iterable(read_columns(cached_path(file_path))):
            yield self.text_to_instance(words, tags, where)

    def text_to_instance(
        self, words: Sequence[str | Token], tags: Sequence[str] | None = None, where: str = "the input"
    ) -> Instance:
        """
        # Parameters

        words : `Sequence[Union[str, Token]]`
            A sentence.
        tags : `Sequence[str]`, optional
            A tag for each word.
        where : `str`
            The place of the sentence as an error names it.

        # Returns

        `Instance`
            `tokens`, `metadata` (the words), and `tags` in the BIOUL scheme if tags are given.
        """
        tokens = [word if isinstance(word, Token) else Token(word) for word in words]
        text = TextField(tokens)
        fields: dict[str, Field] = {"tokens": text, "metadata": MetadataField({"words": [t.text for t in tokens]})}
        if tags is not None:
            bioul = spans_to_bioul(tags_to_spans(tags), len(tags))
            fields["tags"] = SpanTagsField(bioul, text, where, prefixes="BILU", labels="types of entities")
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers


def read_columns(path: str) -> Iterator[tuple[list[str], list[str] | None, str]]:
    """
    The sentences of a file, their tags, which are `None` in a file of words alone, and the file and the first line of
    each, as an error names them.

    # Raises

    `ValueError`
        If a line has another number of columns than the first, a last column that is not a tag, or is not text, or if
        the columns are separated by commas; with file and line.
    """
    n_columns = 0
    where = ""
    sentence: list[list[str]] = []
    for number, line in numbered_lines(path):
        columns = columns_of(line)
        if not columns or columns[0] == "-DOCSTART-":
            if sentence:
                yield *_words_and_tags(sentence, f"{path}, line {number - 1}"), where
                sentence = []
            continue
        n_columns = n_columns or len(columns)
        if len(columns) != n_columns:
            raise ValueError(
                f"{path}, line {number}: every line must have {n_columns} columns, as the first has, "
                f"but this one has {len(columns)}: {line!r}"
            )
        # What cannot be seen, as U+200B, would make another type of entities.
        if n_columns > 1 and not (_TAG.fullmatch(columns[-1]) and columns[-1].isprintable()):
            raise ValueError(
                f"{path}, line {number}: the last column must be a tag like O, B-PER or I-PER, but is {columns[-1]!a}"
            )
        if not sentence:
            where = f"{path}, line {number}"
        sentence.append(columns)
    if sentence:
        yield *_words_and_tags(sentence, f"{path}, line {number}"), where
    if not n_columns:
        raise ValueError(f"{path} must hold at least one sentence, one word on each line, but holds none")


def _words_and_tags(sentence: list[list[str]], where: str) -> tuple[list[str], list[str] | None]:
    words = [columns[0] for columns in sentence]
    if len(sentence[0]) > 1:
        return words, [columns[-1] for columns in sentence]
    # No sentence of words consists of such, but for the first line, which may name the columns.
    if len(words) > 2 and all(map(_TAG_AFTER_COMMA.search, words[1:])):
        raise ValueError(
            f"{where}: columns must be separated by spaces or tabs, but here they seem to be by commas: {words[-1]!r}"
        )
    return words, None
