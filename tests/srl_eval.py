"""
The counts of CoNLL-2005's `srl-eval.pl`, in its terms: propositions are columns of brackets,
arguments are lists of one or more phrases, and each gold argument is searched for among the
predicted ones.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field


def brackets(tags: list[str]) -> list[str]:
    """Converts well-formed BIO tags to a column like `(A0*`, `*)`, `(V*)`."""
    column = []
    for tag, after in zip(tags, [*tags, "O"][1:], strict=True):
        opens = f"({tag[2:]}" if tag[0] == "B" else ""
        closes = ")" if tag != "O" and after[0] != "I" else ""
        column.append(f"{opens}*{closes}")
    return column


@dataclass
class Argument:
    label: str
    words: list[tuple[int, ...]] = field(default_factory=list)


def arguments(column: list[str]) -> list[Argument]:
    """The arguments of a column, joined with their continuations."""
    joined: list[Argument] = []
    for label, words in phrases(column):
        label_of_argument = label.removeprefix("C-")
        before = [argument for argument in joined if argument.label == label_of_argument]
        if label.startswith("C-") and before:
            before[-1].words.append(words)
        else:
            joined.append(Argument(label_of_argument, [words]))
    return joined


def phrases(column: list[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The label and the words of each pair of brackets."""
    label = None
    words: list[int] = []
    for index, cell in enumerate(column):
        if cell.startswith("("):
            assert label is None
            label = cell[1 : cell.index("*")]
            words = []
        if label is not None:
            words.append(index)
        if cell.endswith(")"):
            assert label is not None
            yield label, tuple(words)
            label = None
    assert label is None


def evaluate(
    pairs: list[tuple[list[str], list[str]]],
) -> tuple[Counter[str], Counter[str], Counter[str], int]:
    """
    Correct, excess and missed arguments per label, and perfect propositions, from gold and
    predicted columns.
    """
    correct, excess, missed = Counter[str](), Counter[str](), Counter[str]()
    n_perfect = 0
    for gold_column, predicted_column in pairs:
        left = arguments(predicted_column)
        errors = 0
        for argument in arguments(gold_column):
            if argument in left:
                left.remove(argument)
                correct[argument.label] += 1
            else:
                missed[argument.label] += 1
                errors += argument.label != "V"
        for argument in left:
            excess[argument.label] += 1
            errors += argument.label != "V"
        n_perfect += errors == 0
    return correct, excess, missed, n_perfect
