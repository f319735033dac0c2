"""Dataset reader of pairs of sentences, in the formats of SNLI and MultiNLI."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Optional

from allennlp.common.file_utils import cached_path
from allennlp.data import DatasetReader, Instance, Token, TokenIndexer, Tokenizer
from allennlp.data.fields import Field, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer

from elmo_tasks.data.fields import KnownLabelField, RepeatedTextField
from elmo_tasks.data.formats.json_objects import check_unicode, json_object
from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.data.token_cache import cached_tokens
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["SnliReader"]

logger = logging.getLogger(__name__)

_LABEL, _PREMISE, _HYPOTHESIS = "gold_label", "sentence1", "sentence2"
# The label of pairs that the annotators did not agree on.
_NO_AGREEMENT = "-"


@DatasetReader.register("elmo_snli")
class SnliReader(DatasetReader):
    """
    Reads the two forms in which SNLI and MultiNLI are distributed: JSON lines with the keys `sentence1` (the premise),
    `sentence2` (the hypothesis) and `gold_label`, or a table with tabs whose first line names these columns. Other
    keys are ignored. Pairs whose label is `-`, on which the annotators did not agree, are skipped and counted in the
    log. A file without labels is for prediction.

    Registered as a `DatasetReader` with name "elmo_snli". AllenNLP's `snli` has no table, and does not name the broken
    line.

    # Parameters

    token_indexers : `Dict[str, TokenIndexer]`, optional
        See `DatasetReader`; by default a `SingleIdTokenIndexer` named `tokens`.
    tokenizer : `Tokenizer`
        The tokenizer of both sentences, by default `SpacyBlankTokenizer`.
    labels : `List[str]`
        The labels that the files of a training may have.
    """

    def __init__(
        self,
        token_indexers: Optional[dict[str, TokenIndexer]] = None,
        tokenizer: Optional[Tokenizer] = None,
        labels: Sequence[str] = ("entailment", "neutral", "contradiction"),
        **kwargs: object,
    ) -> None:
        # By name, from the config: `max_instances` and whatever else `DatasetReader` takes.
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._token_indexers = token_indexers or {"tokens": SingleIdTokenIndexer()}
        self._tokenizer = tokenizer or SpacyBlankTokenizer()
        self._labels = list(labels)

    def _read(self, file_path: str) -> Iterator[Instance]:
        text = premise = None
        path = cached_path(file_path)
        with cached_tokens(self._tokenizer, path) as tokenizer:
            for where, pair in self.shard_iterable(_agreed_pairs(path)):
                # Most premises come three times in a row, and are tokenized and indexed once.
                if premise is None or text != pair[_PREMISE]:
                    text = pair[_PREMISE]
                    premise = RepeatedTextField(_tokens(tokenizer, "premise", text, where))
                hypothesis = TextField(_tokens(tokenizer, "hypothesis", pair[_HYPOTHESIS], where))
                yield self._instance(premise, hypothesis, pair.get(_LABEL), where)

    def text_to_instance(
        self, premise: str, hypothesis: str, label: str | None = None, where: str = "the input"
    ) -> Instance:
        """
        # Parameters

        premise, hypothesis : `str`
            Two sentences.
        label : `str`, optional
            The relation of the second to the first.
        where : `str`
            The place of the pair as an error names it.

        # Returns

        `Instance`
            `premise`, `hypothesis`, `metadata` (the tokens of both), and `label` if there is one.

        # Raises

        `ValueError`
            If a sentence has no words, or the label is no text. A label that is not one of the reader's is an error of
            a training.
        """
        texts = {"premise": premise, "hypothesis": hypothesis}
        fields = {name: TextField(_tokens(self._tokenizer, name, text, where)) for name, text in texts.items()}
        return self._instance(fields["premise"], fields["hypothesis"], label, where)

    def _instance(self, premise: TextField, hypothesis: TextField, label: str | None, where: str) -> Instance:
        texts = {"premise": premise, "hypothesis": hypothesis}
        words = {f"{name}_tokens": [token.text for token in text.tokens] for name, text in texts.items()}
        fields: dict[str, Field] = {**texts, "metadata": MetadataField(words)}
        if label is not None:
            if not isinstance(label, str):
                raise ValueError(f"{where}: the label must be one of {', '.join(self._labels)}, but is {label!r}")
            # Checked where it is used: a prediction does without it.
            fields["label"] = KnownLabelField(label, where, self._labels)
        return Instance(fields)

    def apply_token_indexers(self, instance: Instance) -> None:
        for name in ("premise", "hypothesis"):
            instance[name].token_indexers = self._token_indexers


def _tokens(tokenizer: Tokenizer, name: str, text: str, where: str) -> list[Token]:
    tokens: list[Token] = tokenizer.tokenize(text)
    if not tokens:
        raise ValueError(f"{where}: the {name} must have at least one word, but is {text!r}: remove the pair")
    return tokens


def _agreed_pairs(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pairs of a file that the annotators agreed on, each with its file and line."""
    n_pairs = n_skipped = 0
    has_labels: bool | None = None
    for where, pair in _pairs(path):
        for key in (_PREMISE, _HYPOTHESIS):
            if not isinstance(pair.get(key), str):
                found = repr(pair[key]) if key in pair else f"only {', '.join(map(repr, pair))}"
                raise ValueError(f"{where}: a pair must have a text under {key!r}, but has {found:.100}")
            check_unicode(pair[key], f"{where}: {key!r}")
        n_pairs += 1
        has_label = pair.get(_LABEL) is not None
        has_labels = has_label if has_labels is None else has_labels
        if has_label != has_labels:
            raise ValueError(
                f"{where}: either all pairs of a file must have a {_LABEL!r} or none, but this one has "
                f"{'one' if has_label else 'none'} and those before have {'one' if has_labels else 'none'}"
            )
        if pair.get(_LABEL) == _NO_AGREEMENT:
            n_skipped += 1
        else:
            yield where, pair
    if n_pairs == n_skipped:
        found = f"holds only {n_skipped} with the label '-'" if n_pairs else "holds none"
        raise ValueError(f"{path} must hold at least one pair, but {found}")
    logger.info("%s: %d pairs, and %d skipped whose label is '-'", path, n_pairs - n_skipped, n_skipped)


def _pairs(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pairs of a file by their keys, each with its file and line."""
    columns: list[str] = []
    for number, line in numbered_lines(path):
        where = f"{path}, line {number}"
        if not line.strip():
            continue
        if columns:
            values = line.split("\t")
            if len(values) != len(columns):
                raise ValueError(
                    f"{where}: every line must have {len(columns)} columns, as the first has, but this one has "
                    f"{len(values)}: {line!r:.100}"
                )
            yield where, dict(zip(columns, values, strict=True))
        elif line.lstrip().startswith("{"):
            yield where, _json(line, where)
        elif {_PREMISE, _HYPOTHESIS} <= set(line.split("\t")):
            columns = line.split("\t")
            if twice := [name for name in (_LABEL, _PREMISE, _HYPOTHESIS) if columns.count(name) > 1]:
                raise ValueError(f"{where}: a table must have one column {twice[0]!r}, but has several")
        else:
            raise ValueError(
                f"{where}: a pair must be a JSON object, or the first line name the columns of a table with tabs, "
                f"{_PREMISE} and {_HYPOTHESIS} among them, but is {line!r:.100}"
            )


def _json(line: str, where: str) -> dict[str, Any]:
    try:
        return json_object(line)
    except ValueError as error:
        raise ValueError(f"{where}: a pair must be a JSON object, but is {line!r:.100} ({error})") from None
