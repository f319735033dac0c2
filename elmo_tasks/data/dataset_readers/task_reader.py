"""The base classes and shared functions of the dataset readers of tasks."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, groupby, islice
from operator import itemgetter
from os import PathLike, fspath
from typing import Any, Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import Field, ListField, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.files.lines import located
from elmo_tasks.text import as_words

__all__ = [
    "FileReader",
    "SpanTagsField",
    "TaskReader",
    "parts_of_file",
    "sentence_fields",
    "word_of",
]

# What looks like parts after a path: not a character class of a pattern, such as `[0-9]`.
_PARTS = re.compile(r"(.*)\[([\d\s.+:%]*[:%][\d\s.+:%]*)\]")
_PART = re.compile(r"\s*(?:(\d+(?:\.\d+)?)%)?\s*:\s*(?:(\d+(?:\.\d+)?)%)?\s*")

# The percentages of the rows before a part, and up to its end.
_Percentages = tuple[Fraction, Fraction]


class FileReader:
    """
    The part of a `DatasetReader` that creates an instance from each row of a file. Errors name the
    place.
    """

    # Of `DatasetReader`, which is not a base: AllenNLP would look for the parameters of a subclass
    # only there.
    shard_iterable: Any
    text_to_instance: Any
    _token_indexers: Any

    reads_gold = True
    """Whether files are read with their labels. A predictor sets it to `False`."""

    wanted = "sentence"
    """What a file must have at least one of; the error names it if there is none."""

    def rows(self, path: str) -> Iterator[tuple[int | str, Any]]:
        """
        For each instance, its line or other place in a local file, and the arguments of
        `instance_of`.
        """
        yield from ()

    def instance_of(self, *row: Any) -> Instance | None:
        """
        The instance of a row, by default from the arguments of `text_to_instance`; `None` if it is
        skipped.
        """
        return self.text_to_instance(*row)

    def apply_token_indexers(self, instance: Instance) -> None:
        for field in instance.fields.values():
            texts = field if isinstance(field, ListField) else [field]
            for text in texts:
                if isinstance(text, TextField):
                    text.token_indexers = self._token_indexers

    def _read(self, file_path: str) -> Iterator[Instance]:
        name, parts = parts_of_file(file_path)
        path = cached_path(name)
        rows = self.rows(path)
        if parts:
            rows = _rows_of_parts(rows, parts)
        first_row = list(islice(rows, 1))
        if not first_row:
            raise ValueError(f"expected at least one {self.wanted}, got none: {path}")
        for place, row in self.shard_iterable(chain(first_row, rows)):
            with located(path, place):
                instance = self.instance_of(*row)
                if self.reads_gold and instance is not None:
                    _check_words(instance)
            if instance is not None:
                yield instance


def parts_of_file(path: str | PathLike[str]) -> tuple[str, list[_Percentages]]:
    """
    A path, and the parts of its rows to read, each from one percentage to another; none for the
    whole file. `export.json[20%:40%]` is a fold of five, `export.json[:20%+40%:]` the others.
    """
    name = fspath(path)
    match = _PARTS.fullmatch(name)
    if match is None or os.path.exists(name):
        return name, []
    parts = []
    last = Fraction(0)
    for text in match[2].split("+"):
        bounds = _PART.fullmatch(text)
        start = Fraction(0)
        stop = Fraction(0)
        if bounds is not None:
            start = Fraction(bounds[1] or 0)
            stop = Fraction(bounds[2] or 100)
        if not last <= start < stop <= 100:
            expected = "parts in percent and in order, such as [:80%] or [:20%+40%:]"
            raise ConfigurationError(f"expected {expected}, got [{match[2]}]: {name}")
        parts.append((start, stop))
        last = stop
    return match[1], parts


def _rows_of_parts(
    rows: Iterable[tuple[int | str, Any]], parts: list[_Percentages]
) -> Iterator[tuple[int | str, Any]]:
    # The sentences of a text, which have one place, are in the same part.
    texts = [list(group) for _, group in groupby(rows, key=itemgetter(0))]
    for start, stop in parts:
        first_text = int(len(texts) * start / 100)
        end_text = int(len(texts) * stop / 100)
        yield from chain.from_iterable(texts[first_text:end_text])


class TaskReader(FileReader, DatasetReader):
    """
    The base class of our own readers. The default of `token_indexers` is a `SingleIdTokenIndexer`
    named `tokens`.
    """

    def __init__(
        self, token_indexers: Optional[dict[str, TokenIndexer]] = None, **kwargs: Any
    ) -> None:
        super().__init__(
            manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs
        )
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}


def _check_words(instance: Instance) -> None:
    for name, field in instance.fields.items():
        if isinstance(field, TextField) and not field.tokens:
            # Its vectors could not be pooled: the loss would be NaN.
            raise ValueError(f"expected words as {name}, got none")


class SpanTagsField(SequenceLabelField):
    """
    A `SequenceLabelField` of tags like `B-PER`. It adds each label to the vocabulary with all
    prefixes of the scheme, because a tag that is missing from the training data by chance may be in
    the test data. The prefixes are `BI` for BIO, and `BILU` for BIOUL.
    """

    def __init__(self, tags: Sequence[str], text: TextField, *, prefixes: str) -> None:
        super().__init__(list(tags), text)
        self._prefixes = prefixes

    def count_vocab_items(self, counter: dict[str, dict[str, int]]) -> None:
        super().count_vocab_items(counter)
        counts = counter[self._label_namespace]
        for label in sorted({tag[2:] for tag in self.labels if tag != "O"}):
            for prefix in self._prefixes:
                tag = f"{prefix}-{label}"
                counts[tag] = counts.get(tag) or 1


def sentence_fields(words: Sequence[str | Token]) -> dict[str, Field]:
    """`tokens` and `metadata`, which contains the `words`."""
    tokens = [word if isinstance(word, Token) else Token(word) for word in words]
    metadata = {"words": as_words([token.text for token in tokens])}
    return {"tokens": TextField(tokens), "metadata": MetadataField(metadata)}


def word_of(column: str) -> str:
    """
    A word of CoNLL-2012, without the slash that OntoNotes has before some full stops and question
    marks.
    """
    if column in ("/.", "/?"):
        return column[1:]
    return column
