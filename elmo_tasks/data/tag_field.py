"""Tags of words whose labels must be those of the training."""

from collections.abc import Iterable, Sequence

from allennlp.data import Vocabulary
from allennlp.data.fields import SequenceLabelField, TextField

__all__ = ["TagField"]


class TagField(SequenceLabelField):
    """
    A `SequenceLabelField` of tags like `B-PER`, of which a label has all that the scheme knows or none: one that
    training data lacks by chance may be in test data.

    # Parameters

    tags : `Sequence[str]`
        `O`, or a prefix and a label for each word.
    text : `TextField`
        The words.
    prefixes : `str`
        Those of the scheme: `BIO` has `BI`, and `BIOUL` has `BILU`.
    labels : `str`
        What an error calls the labels.
    """

    def __init__(self, tags: Sequence[str], text: TextField, *, prefixes: str, labels: str) -> None:
        super().__init__(list(tags), text)
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
        known = vocab.get_token_to_index_vocabulary(self._label_namespace)
        if unknown := _labels(tag for tag in self.labels if tag not in known):
            raise ValueError(
                f"the {self._name_of_labels} must be those of the training ({', '.join(_labels(known))}), but the "
                f"sentence {' '.join(token.text for token in self.sequence_field)!r:.100} has {', '.join(unknown)}: "
                "leave the tags out if you want predictions only, or train with a vocabulary that has them"
            )
        super().index(vocab)


def _labels(tags: Iterable[str]) -> list[str]:
    return sorted({tag[2:] for tag in tags if tag != "O"})
