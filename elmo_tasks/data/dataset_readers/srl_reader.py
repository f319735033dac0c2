"""Dataset reader of semantic roles, in the columns of CoNLL-2012 and OntoNotes."""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Optional

from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer
from allennlp.data.fields import Field, MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.fields import RepeatedTextField, SpanTagsField
from elmo_tasks.data.formats.columns import check_count, columns_of, word_of
from elmo_tasks.files.folders import files_below
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["Proposition", "SrlReader", "read_propositions"]

logger = logging.getLogger(__name__)

_SUFFIX = "gold_conll"
_NUMBER, _WORD = 2, 3
# The predicates' columns are between that of the entities and the last, that of coreference.
_FIRST_PREDICATE = 11
_CELL = re.compile(r"((?:\([^()*]+)*)\*(\)*)")
_DOCUMENT = ("#begin document", "#end document")


class Proposition(NamedTuple):
    """
    A predicate of a sentence with its arguments.

    # Parameters

    words : `List[str]`
        The sentence: one object for all of its predicates.
    tags : `List[str]`
        For each word its place in an argument or in the predicate, in the BIO scheme.
    where : `str`
        The file and the first line of the sentence, as an error names them.
    """

    words: list[str]
    tags: list[str]
    where: str

    @property
    def verb_indicator(self) -> list[int]:
        """1 at the words of the predicate."""
        # Differs from AllenNLP, which marks `C-V` too: the model has to find that.
        return [int(tag in ("B-V", "I-V")) for tag in self.tags]


@DatasetReader.register("elmo_srl")
class SrlReader(DatasetReader):
    """
    Reads a file in the columns of CoNLL-2012, or all of a folder, however deep, whose names end in `gold_conll`. There
    is an instance for each predicate of a sentence; columns without a `V` are skipped, and the log says how many.

    Registered as a `DatasetReader` with name "elmo_srl". AllenNLP's `srl` takes no single file, does not name the
    broken line, accepts propositions with crossing brackets, and loses one where two predicates share a word.

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    """

    def __init__(self, token_indexers: Optional[dict[str, TokenIndexer]] = None, **kwargs: object) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}

    def _read(self, file_path: str) -> Iterator[Instance]:
        words, text = None, None
        for proposition in self.shard_iterable(read_propositions(str(cached_path(file_path)))):
            if text is None or words is not proposition.words:
                words, text = proposition.words, RepeatedTextField([Token(word) for word in proposition.words])
            yield self._instance(text, proposition.verb_indicator, proposition.tags, proposition.where)

    def text_to_instance(
        self,
        words: Sequence[str | Token],
        verb_indicator: Sequence[int],
        tags: Sequence[str] | None = None,
        where: str = "the input",
    ) -> Instance:
        """
        # Parameters

        words : `Sequence[Union[str, Token]]`
            A sentence.
        verb_indicator : `Sequence[int]`
            1 at the words of the predicate, 0 at the others.
        tags : `Sequence[str]`, optional
            The arguments in the BIO scheme.
        where : `str`
            The place of the sentence as an error names it.

        # Returns

        `Instance`
            `tokens`, `verb_indicator`, `metadata`, and `tags` if they are given. The metadata has `words`, `verb` and
            `verb_index` (the first word of the predicate and its place), and `gold_tags`, if tags are given.

        # Raises

        `ValueError`
            If the indicator does not fit the sentence, or marks no word.
        """
        text = TextField([word if isinstance(word, Token) else Token(word) for word in words])
        return self._instance(text, verb_indicator, tags, where)

    def _instance(
        self, text: TextField, verb_indicator: Sequence[int], tags: Sequence[str] | None, where: str
    ) -> Instance:
        words = [token.text for token in text.tokens]
        if len(verb_indicator) != len(words) or not set(verb_indicator) <= {0, 1} or 1 not in verb_indicator:
            raise ValueError(
                "verb_indicator must have a 0 or 1 for each word, and a 1 at the predicate, but is "
                f"{list(verb_indicator)} for {words}"
            )
        index = list(verb_indicator).index(1)
        metadata: dict[str, Any] = {"words": words, "verb": words[index], "verb_index": index}
        indicator = SequenceLabelField(list(verb_indicator), text)
        fields: dict[str, Field] = {"tokens": text, "verb_indicator": indicator}
        if tags is not None:
            fields["tags"] = SpanTagsField(tags, text, where, prefixes="BI", labels="labels of arguments")
            metadata["gold_tags"] = list(tags)
        fields["metadata"] = MetadataField(metadata)
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers


def read_propositions(path: str) -> Iterator[Proposition]:
    """
    The propositions of a file, or of all files of a folder in the order of their names.

    # Raises

    `ValueError`
        If a folder has no such file, a file has no sentence, all have no predicate, or a line or column is broken; with
        file and line.
    """
    files = [path]
    if os.path.isdir(path):
        files = sorted(str(file) for file in files_below(Path(path)) if file.name.endswith(_SUFFIX))
        if not files:
            raise ValueError(f"{path} must hold files whose names end in {_SUFFIX}, but holds none")
    n_read = n_without_predicate = 0
    for file in files:
        for rows in _sentences(file):
            words = [word_of(columns[_WORD]) for _, columns in rows]
            for column in range(_FIRST_PREDICATE, len(rows[0][1]) - 1):
                tags = _tags(file, rows, column)
                if "B-V" not in tags:
                    n_without_predicate += 1
                    continue
                n_read += 1
                yield Proposition(words, tags, f"{file}, line {rows[0][0]}")
    if not n_read:
        raise ValueError(f"{path} must hold at least one predicate with its arguments, but holds none")
    logger.info("%s: %d propositions", path, n_read)
    if n_without_predicate:
        logger.warning("%s: %d propositions without a predicate (V) were skipped", path, n_without_predicate)


_Row = tuple[int, list[str]]
"""The number of a line, and its columns."""


def _sentences(file: str) -> Iterator[list[_Row]]:
    rows: list[_Row] = []
    is_empty = True
    for number, line in numbered_lines(file):
        columns = columns_of(line)
        is_empty = is_empty and not columns
        if not columns or columns[0].startswith("#"):
            if rows and columns and not line.startswith(_DOCUMENT):
                raise ValueError(
                    f"{file}, line {number}: a comment must not be in a sentence, but this one is: {line!r:.100}"
                )
            if rows:
                yield rows
                rows = []
            continue
        if len(columns) <= _FIRST_PREDICATE:
            raise ValueError(
                f"{file}, line {number}: a line must have the {_FIRST_PREDICATE + 1} columns of CoNLL-2012, and one "
                f"for each predicate of its sentence, but this one has {len(columns)}: {line!r:.200}"
            )
        if rows and len(columns) != len(rows[0][1]):
            raise ValueError(
                f"{file}, line {number}: the lines of a sentence must have the same number of columns, "
                f"{len(rows[0][1])} as its first, but this one has {len(columns)}: {line!r:.200}"
            )
        if _CELL.fullmatch(columns[-1]):
            raise ValueError(
                f"{file}, line {number}: the last column must be that of coreference, '-' if there is none, but this "
                f"one has arguments, {columns[-1]!r}: append a column of '-', or a predicate is lost"
            )
        if rows:
            check_count([former[_NUMBER] for _, former in rows[-2:]], columns[_NUMBER], f"{file}, line {number}: ")
        rows.append((number, columns))
    if rows:
        yield rows
    if is_empty:
        raise ValueError(f"{file} must hold at least one sentence, one word on each line, but is empty")


def _tags(file: str, rows: list[_Row], column: int) -> list[str]:
    """The column of a predicate as tags in the BIO scheme."""
    tags: list[str] = []
    label, line_of_label, line_of_predicate = None, 0, None
    for line, columns in rows:
        cell = columns[column]
        # Nearly all: it begins and ends nothing.
        if cell == "*":
            tags.append("O" if label is None else f"I-{label}")
            continue
        where = f"{file}, line {line}, column {column + 1}"
        match = _CELL.fullmatch(cell)
        if match is None:
            raise ValueError(f"{where}: arguments must look like (ARG0*, *, *) or (V*), but this is {cell!r}")
        # What cannot be seen, as U+200B, would make another label.
        if not cell.isprintable():
            raise ValueError(f"{where}: a label must consist of characters that can be seen, but this is {cell!a}")
        opened, n_closed = match[1].split("(")[1:], len(match[2])
        if len(opened) + (label is not None) > 1:
            raise ValueError(
                f"{where}: the arguments of a predicate must not overlap, but {cell!r} begins {' and '.join(opened)} "
                + (f"within {label} from line {line_of_label}" if label is not None else "together")
                + ": close one before the next, or give its later part a label like C-ARG1"
            )
        if n_closed > (label is not None) + len(opened):
            raise ValueError(
                f"{where}: a bracket must be opened before it is closed, but {cell!r} closes one that is not open"
            )
        if opened:
            label, line_of_label = opened[0], line
            if label == "V":
                if line_of_predicate is not None:
                    raise ValueError(
                        f"{where}: a proposition must have one predicate, but this one has V here and in line "
                        f"{line_of_predicate}: call the second C-V, or give it a column of its own"
                    )
                line_of_predicate = line
        tags.append("O" if label is None else f"{'B' if opened else 'I'}-{label}")
        if n_closed:
            label = None
    if label is not None:
        raise ValueError(
            f"{file}, line {line_of_label}, column {column + 1}: an argument must be closed by *) before its sentence "
            f"ends, but {label} is not"
        )
    return tags
