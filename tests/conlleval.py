"""
The counts of CoNLL's `conlleval.pl`: a line-by-line port of its functions `startOfChunk` and
`endOfChunk`, and of the loop that calls them. It supports the prefixes `B`, `I` and `O`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

STARTS = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}
ENDS = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}
OUTSIDE = ("O", "")


def start_of_chunk(previous: str, tag: str, previous_type: str, type_: str) -> bool:
    return (previous, tag) in STARTS or (tag != "O" and previous_type != type_)


def end_of_chunk(previous: str, tag: str, previous_type: str, type_: str) -> bool:
    return (previous, tag) in ENDS or (previous != "O" and previous_type != type_)


def split(tag: str) -> tuple[str, str]:
    prefix, _, type_ = tag.partition("-")
    return prefix, type_


def chunks(tags: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """The type, first word and last word of each chunk."""
    previous = "O"
    previous_type = ""
    start = None
    for index, (tag, type_) in enumerate([*map(split, tags), OUTSIDE]):
        if end_of_chunk(previous, tag, previous_type, type_):
            assert start is not None
            yield previous_type, start, index - 1
            start = None
        if start_of_chunk(previous, tag, previous_type, type_):
            assert start is None
            start = index
        previous, previous_type = tag, type_


def counts(
    sentences: Iterable[tuple[list[str], list[str]]],
) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """
    Correct, found (predicted) and gold chunks per type, from pairs of gold and predicted tags. A
    chunk is correct if both sides start together, have the same type throughout, and end together.
    """
    correct = Counter[str]()
    found = Counter[str]()
    gold = Counter[str]()
    in_correct = False
    last_tag, last_type = OUTSIDE
    last_guess, last_guessed_type = OUTSIDE
    for gold_tags, guessed_tags in sentences:
        # An empty line after each sentence counts as outside.
        gold_column = [*map(split, gold_tags), OUTSIDE]
        guessed_column = [*map(split, guessed_tags), OUTSIDE]
        for (tag, type_), (guess, guessed_type) in zip(gold_column, guessed_column, strict=True):
            gold_ends = end_of_chunk(last_tag, tag, last_type, type_)
            guess_ends = end_of_chunk(last_guess, guess, last_guessed_type, guessed_type)
            gold_starts = start_of_chunk(last_tag, tag, last_type, type_)
            guess_starts = start_of_chunk(last_guess, guess, last_guessed_type, guessed_type)
            if in_correct:
                if gold_ends and guess_ends and last_type == last_guessed_type:
                    in_correct = False
                    correct[last_type] += 1
                elif gold_ends != guess_ends or guessed_type != type_:
                    in_correct = False
            if gold_starts and guess_starts and guessed_type == type_:
                in_correct = True
            gold[type_] += gold_starts
            found[guessed_type] += guess_starts
            last_tag, last_type = tag, type_
            last_guess, last_guessed_type = guess, guessed_type
    return correct, found, gold
