"""The time from text to words, and to sentences, is proportional to the length of any text."""

import math
import random
import string
import time
from collections.abc import Callable
from functools import partial

import pytest

from elmo_tasks.text import located_sentences, pieces, sentence_ranges, words_of_text
from elmo_tasks.text.normal import in_nfc, origins, readable
from elmo_tasks.text.words import pipeline_of

EMOJI = ["😀", "👍🏽", "❤️", "🇩🇪", "👩‍👩‍👧", "…", "─", "★", "→", "©"]
MARKS = ["\u0301", "\u0323\u0301", "\u05b0\u0301\u0323", "e\u0301", "\u1112\u1161\u11ab", "\u0958"]
PAIRS = ["'s", "ab", "\n ", " \t", "\r\n"]
for letter in "a1 ":
    PAIRS += [letter + sign for sign in string.punctuation]
CHARACTERS = [*string.punctuation, *string.whitespace, "a", "Z", "0", "\0", "\ud83d", "。", "가"]
SIGNS = "".join(random.Random(1).choices("(=_*#\"'…─😀a", k=40_000))
# Each took seconds, or a time that grows with the square, in an earlier version.
WORST = ["(", "=", "\u0323\u0301", "'s", "a:", "😀", SIGNS]

LANGUAGES = ["en", "xx", "de", "fr", "hu", "tr"]
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "readable": readable,
    "in_nfc": in_nfc,
    "origins": origins,
    "whitespace": partial(words_of_text, tokenizer="whitespace"),
    "pieces": lambda text: pieces(list(text)),
    "sentence_ranges": lambda text: sentence_ranges(list(text)),
}
for language in LANGUAGES:
    FUNCTIONS[language] = partial(located_sentences, tokenizer=language)
# In seconds: below this, a time is noise.
FLOOR = 0.005


def seconds(function: Callable[[str], object], unit: str, n_characters: int) -> float:
    # After a letter, because an accent needs one.
    text = ("x" + unit * (n_characters // len(unit) + 1))[:n_characters]
    start = time.thread_time()
    function(text)
    return max(time.thread_time() - start, FLOOR)


def growth(name: str, unit: str) -> tuple[float, float]:
    """
    The seconds for a text, and how many times the seconds for half of it they are: the best of some
    runs.
    """
    n_characters = 2_000 if name in LANGUAGES else 20_000
    half_seconds = math.inf
    whole_seconds = math.inf
    for _ in range(5):
        half_seconds = min(half_seconds, seconds(FUNCTIONS[name], unit, n_characters))
        whole_seconds = min(whole_seconds, seconds(FUNCTIONS[name], unit, 2 * n_characters))
        if whole_seconds < 3 * half_seconds:
            break
    return whole_seconds, whole_seconds / half_seconds


@pytest.fixture
def without_cache(name, monkeypatch) -> None:
    """A run of one sign consists of equal parts, which spaCy would split only once."""
    if name in LANGUAGES:
        monkeypatch.setattr(pipeline_of(name).tokenizer, "max_cache_size", 0)


@pytest.mark.usefixtures("without_cache")
@pytest.mark.parametrize("unit", WORST)
@pytest.mark.parametrize("name", ["in_nfc", "origins", "en"])
def test_twice_the_text_takes_at_most_three_times_as_long(name, unit):
    _, factor = growth(name, unit)
    assert factor < 3


@pytest.mark.weekly
@pytest.mark.usefixtures("without_cache")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_linear_in_each_sign(name):
    """With `pytest -s`, prints the slowest text and the largest growth."""
    units = [*CHARACTERS, *EMOJI, *MARKS, *PAIRS, SIGNS]
    seconds_of_units = {}
    factors = {}
    for unit in units:
        seconds_of_units[unit], factors[unit] = growth(name, unit)
    slowest = max(units, key=seconds_of_units.__getitem__)
    steepest = max(units, key=factors.__getitem__)
    n_characters = 4_000 if name in LANGUAGES else 40_000
    milliseconds = seconds_of_units[slowest] * 1e6 / n_characters
    print(
        f"{name:20} {len(factors)} texts, slowest {slowest[:8]!r:10} {milliseconds:6.2f} ms per "
        f"1,000 characters, largest growth {factors[steepest]:.2f} for {steepest[:8]!r}"
    )
    assert factors[steepest] < 3
