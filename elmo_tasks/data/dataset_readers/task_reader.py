"""The base class and shared functions of the dataset readers of tasks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Optional

from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import Field, ListField, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["SpanTagsField", "TaskReader", "blocks", "columns_of", "located", "sentence_fields", "word_of"]


class TaskReader(DatasetReader):
    """
    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    """

    reads_gold = True
    """Whether files are read with their labels. A predictor sets it to `False`."""

    def __init__(self, token_indexers: Optional[dict[str, TokenIndexer]] = None, **kwargs: Any) -> None:
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}

    def apply_token_indexers(self, instance: Instance) -> None:
        for field in instance.fields.values():
            for text in field if isinstance(field, ListField) else [field]:
                if isinstance(text, TextField):
                    text.token_indexers = self._token_indexers


class SpanTagsField(SequenceLabelField):
    """
    A `SequenceLabelField` of tags like `B-PER`. It adds each label to the vocabulary with all prefixes of the scheme,
    because a tag that is missing from the training data by chance may be in the test data.

    # Parameters

    prefixes : `str`
        The prefixes of the scheme: `BI` for BIO, `BILU` for BIOUL.
    """

    def __init__(self, tags: Sequence[str], text: TextField, *, prefixes: str) -> None:
        super().__init__(list(tags), text)
        self._prefixes = prefixes

    def count_vocab_items(self, counter: dict[str, dict[str, int]]) -> None:
        super().count_vocab_items(counter)
        counts = counter[self._label_namespace]
        for label in sorted({tag[2:] for tag in self.labels if tag != "O"}):
            for prefix in self._prefixes:
                counts[f"{prefix}-{label}"] = counts.get(f"{prefix}-{label}") or 1


def sentence_fields(words: Sequence[str | Token]) -> dict[str, Field]:
    """`tokens` and `metadata`, which contains the `words`."""
    tokens = [word if isinstance(word, Token) else Token(word) for word in words]
    return {"tokens": TextField(tokens), "metadata": MetadataField({"words": [token.text for token in tokens]})}


@contextmanager
def located(path: str, place: int | str) -> Iterator[None]:
    """Adds the file, and the line or other place in it, to the errors of a parser."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"expected the key {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{what}: {path}, {place if isinstance(place, str) else f'line {place}'}") from error


def blocks(
    path: str, is_break: Callable[[str], bool] = lambda line: not line.strip()
) -> Iterator[list[tuple[int, str]]]:
    """Consecutive lines that are not breaks, each with its number."""
    for is_between, lines in groupby(numbered_lines(path), lambda numbered: is_break(numbered[1])):
        if not is_between:
            yield list(lines)


def columns_of(line: str) -> list[str]:
    """The columns of a line. Only spaces and tabs separate them, because a word may contain a no-break space."""
    return [column for column in line.replace("\t", " ").split(" ") if column]


def word_of(column: str) -> str:
    """A word of CoNLL-2012, without the slash that OntoNotes has before some full stops and question marks."""
    return column[1:] if column in ("/.", "/?") else column
