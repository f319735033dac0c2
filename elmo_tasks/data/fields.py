"""Fields of labels and tags that must be those of the training, and of text that several instances have."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from allennlp.data import Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import LabelField, SequenceLabelField, TextField

from elmo_tasks.data.memo import Memo

__all__ = ["KnownLabelField", "KnownTagsField", "RepeatedTextField", "SpanTagsField", "without_gold"]


class KnownLabelField(LabelField):
    """
    A `LabelField` whose error for a label that the vocabulary does not have names the place of the label. AllenNLP's
    raises a bare `KeyError`.

    # Parameters

    label : `str`
        The label.
    where : `str`
        The place as an error names it: the file and the line.
    allowed : `Sequence[str]`, optional
        The labels that a training may have; by default any.
    """

    def __init__(self, label: str, where: str, allowed: Sequence[str] | None = None) -> None:
        super().__init__(label)
        self._where = where
        self._allowed = allowed

    def count_vocab_items(self, counter: dict[str, dict[str, int]]) -> None:
        """
        # Raises

        `ValueError`
            If the label is not among those that are allowed.
        """
        if self._allowed is not None and self.label not in self._allowed:
            raise ValueError(
                f"{self._where}: the label must be one of {', '.join(self._allowed)}, but is {self.label!r}: correct "
                "it, or give the reader the `labels` of your data"
            )
        super().count_vocab_items(counter)

    def index(self, vocab: Vocabulary) -> None:
        """
        # Raises

        `ValueError`
            If the vocabulary does not have the label.
        """
        known = _known(vocab, self._label_namespace)
        if self.label not in known:
            raise ValueError(
                f"{self._where}: the label must be one of the training ({', '.join(known)}), but is {self.label!r}: "
                "`allennlp predict` ignores labels"
            )
        super().index(vocab)


class KnownTagsField(SequenceLabelField):
    """
    A `SequenceLabelField` whose error for a tag that the vocabulary does not have names the place of the sentence.
    AllenNLP's raises a bare `KeyError`.

    # Parameters

    tags : `Sequence[str]`
        A tag for each word.
    text : `TextField`
        The words.
    where : `str`
        The place of the sentence as an error names it: the file and the line.
    """

    def __init__(self, tags: Sequence[str], text: TextField, where: str) -> None:
        super().__init__(list(tags), text)
        self._where = where

    def index(self, vocab: Vocabulary) -> None:
        """
        # Raises

        `ValueError`
            If the vocabulary does not have a tag.
        """
        known = _known(vocab, self._label_namespace)
        for token, tag in zip(self.sequence_field, self.labels, strict=True):
            if tag not in known:
                raise ValueError(
                    f"{self._where}: tags must be those of the training ({', '.join(known)}), but {token.text!r} has "
                    f"{tag!r}: read the column that the model was trained on, or leave out the sentence if only this "
                    "tag is not known; `allennlp predict` ignores tags"
                )
        super().index(vocab)


class SpanTagsField(SequenceLabelField):
    """
    A `SequenceLabelField` of tags like `B-PER`. A label is in the vocabulary with all prefixes of the scheme or with
    none: a tag that the training data lacks by chance may be in test data.

    # Parameters

    tags : `Sequence[str]`
        `O`, or a prefix and a label for each word.
    text : `TextField`
        The words.
    where : `str`
        The place of the sentence as an error names it: the file and the line.
    prefixes : `str`
        Those of the scheme: `BIO` has `BI`, and `BIOUL` has `BILU`.
    labels : `str`
        The labels as an error names them, `types of entities` for example.
    """

    def __init__(self, tags: Sequence[str], text: TextField, where: str, *, prefixes: str, labels: str) -> None:
        super().__init__(list(tags), text)
        self._where = where
        self._prefixes = prefixes
        self._name_of_labels = labels

    def count_vocab_items(self, counter: dict[str, dict[str, int]]) -> None:
        super().count_vocab_items(counter)
        counts = counter[self._label_namespace]
        for label in _labels(self.labels):
            for prefix in self._prefixes:
                counts[f"{prefix}-{label}"] = counts.get(f"{prefix}-{label}") or 1

    def index(self, vocab: Vocabulary) -> None:
        """
        # Raises

        `ValueError`
            If the vocabulary does not have a tag.
        """
        known = _known(vocab, self._label_namespace)
        if unknown := _labels(tag for tag in self.labels if tag not in known):
            raise ValueError(
                f"{self._where}: the {self._name_of_labels} must be those of the training "
                f"({', '.join(_labels(known))}), but the sentence "
                f"{' '.join(token.text for token in self.sequence_field)!r:.100} has {', '.join(unknown)}: "
                "train with a vocabulary that has them; `allennlp predict` ignores tags"
            )
        super().index(vocab)


_Source = tuple[list[Token], dict[str, TokenIndexer] | None]
"""A text and its indexers."""


class _Memo(Memo):
    """What a text adds to the counts of a vocabulary, what its ids are those of, and from what both were computed."""

    def __init__(self) -> None:
        self.counts: dict[str, dict[str, int]] | None = None
        self.counted: _Source | None = None
        self.indexed: _Source | None = None
        self.vocabulary: Vocabulary | None = None


class RepeatedTextField(TextField):
    """
    A `TextField` that several instances have, as the questions on a paragraph have the paragraph. AllenNLP counts and
    indexes it for each of them; this one is computed once.

    # Parameters

    tokens : `List[Token]`
        The text.
    """

    __slots__ = ["_memo"]

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self._memo = _Memo()

    def count_vocab_items(self, counter: dict[str, dict[str, int]]) -> None:
        memo = self._memo
        if memo.counts is None or not self._is(memo.counted):
            memo.counted, memo.counts = self._source(), defaultdict(lambda: defaultdict(int))
            super().count_vocab_items(memo.counts)
        for namespace, of_text in memo.counts.items():
            counts = counter[namespace]
            for item, n in of_text.items():
                counts[item] += n

    def index(self, vocab: Vocabulary) -> None:
        memo = self._memo
        if memo.vocabulary is not vocab or not self._is(memo.indexed):
            super().index(vocab)
            memo.vocabulary, memo.indexed = vocab, self._source()
        # They take as much memory as the text, and are not needed when there is a vocabulary.
        memo.counts = memo.counted = None

    def _source(self) -> _Source:
        return list(self.tokens), self._token_indexers

    def _is(self, source: _Source | None) -> bool:
        return source is not None and source[1] is self._token_indexers and source[0] == self.tokens

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TextField):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in TextField.__slots__)

    __hash__ = None  # type: ignore[assignment]


def without_gold(instance: Instance) -> Instance:
    """An instance without the labels and tags that must be those of the training, which a prediction does not need."""
    gold = (KnownLabelField, KnownTagsField, SpanTagsField)
    return Instance({name: field for name, field in instance.fields.items() if not isinstance(field, gold)})


def _known(vocab: Vocabulary, namespace: str) -> dict[str, int]:
    known: dict[str, int] = vocab.get_token_to_index_vocabulary(namespace)
    return known


def _labels(tags: Iterable[str]) -> list[str]:
    return sorted({tag[2:] for tag in tags if tag != "O"})
