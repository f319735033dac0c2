"""Unlabelled texts: sentences, or pairs of them."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from elmo_tasks.data.formats.json_objects import json_object
from elmo_tasks.files.text_lines import numbered_lines

__all__ = ["Text", "read_texts"]

Text = list[Any]
"""The arguments of `text_to_instance`: the words of a sentence, or a premise and a hypothesis."""

# By its first line.
_OTHER_KINDS = {
    "the beginning of a CoNLL file": re.compile(
        r"^-DOCSTART- |^#begin document |^# (sent_id|text|global\.columns) = |^# newdoc( id = |$)|^1\t([^\t]*\t){8}"
    ),
    "a word with its tag": re.compile(r"^\S+\t(O|[BIELSU]-\S+)\s*$|^\S+ \S+ (O|[BI]-\S+) (O|[BIELSU]-\S+)\s*$"),
    "a tree": re.compile(r"^\(\d+ \(|^\( ?\([A-Z]+ "),
    "the head of a table": re.compile(r"^gold_label\t"),
}


def read_texts(path: Path, *, pairs: bool, most: int | None = None) -> Iterator[Text]:
    """
    The texts of a file: JSON lines if its first line begins with `{`, else one sentence on each line, with white space
    between its words. Lines without words are skipped.

    JSON lines have `words`, or `sentence1` and `sentence2` of a pair; other keys, as a label, are ignored. Of sentences
    in lines, each is a premise, and the next one its hypothesis.

    # Parameters

    path
        UTF-8, plain or compressed.
    pairs
        Whether the model is one of pairs.
    most
        How many at most; `None` is all.

    # Raises

    `ValueError`
        If there is none, a line is of another form, or the file is that of a corpus with labels; with file and line.
    """
    read = _pair_of_json if pairs else _words_of_json
    is_empty = True
    for text in islice(_texts(path, pairs, read), most):
        is_empty = False
        yield text
    if is_empty:
        what = "a pair of sentences" if pairs else "a sentence"
        raise ValueError(f"{path} must hold at least {what} to learn from, but holds none")


def _texts(path: Path, pairs: bool, of_json: Callable[[dict[str, Any], str], Text]) -> Iterator[Text]:
    is_json: bool | None = None
    before: list[str] = []
    for number, line in numbered_lines(path):
        words = line.split()
        if not words:
            continue
        where = f"{path}, line {number}"
        if is_json is None:
            is_json = words[0].startswith("{")
            if not is_json:
                _check_first(line, where)
        if is_json:
            try:
                content = json_object(line)
            except ValueError as error:
                raise ValueError(f"{where}: a text must be a JSON object, but is {line!r:.100} ({error})") from None
            text = of_json(content, where)
            if all(text):
                yield text
        elif words[0].startswith("{") and _has_json(line):
            raise ValueError(
                f"{where}: a text must be a sentence, as in the lines before, but is a JSON object: {line!r:.100}. "
                "Write all of them as JSON lines"
            )
        elif not pairs:
            yield [words]
        else:
            if before:
                yield [" ".join(before), " ".join(words)]
            before = words


def _check_first(line: str, where: str) -> None:
    kind = next((kind for kind, pattern in _OTHER_KINDS.items() if pattern.search(line)), None)
    if kind is None and line.lstrip().startswith("[") and _has_json(line):
        kind = "a JSON array"
    if kind is not None:
        raise ValueError(
            f"{where}: a text must be a sentence with white space between its words, or a JSON object, but this is "
            f"{kind}: {line.strip()!r:.100}. Write its sentences as lines, or its pairs as JSON lines"
        )


def _has_json(line: str) -> bool:
    """Whether it is a JSON object, or array, with texts: `{}` and `[1]` may be those of a sentence."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return bool(found) and all(isinstance(each, str | list | dict) for each in found)


def _words_of_json(content: dict[str, Any], where: str) -> Text:
    words = content.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{where}: a text must have a list of texts under 'words', but has {words!r:.100}")
    if not all(map(str.strip, words)):
        raise ValueError(f"{where}: a word must have a character, but one of {words!r:.100} has none: remove it")
    _check_unicode(words, where)
    return [words]


def _pair_of_json(content: dict[str, Any], where: str) -> Text:
    pair = [content.get(key) for key in ("sentence1", "sentence2")]
    if not all(isinstance(sentence, str) for sentence in pair):
        raise ValueError(f"{where}: a pair must have texts under 'sentence1' and 'sentence2', but has {pair!r:.100}")
    texts = [sentence.strip() for sentence in pair if isinstance(sentence, str)]
    _check_unicode(texts, where)
    return texts


def _check_unicode(texts: Sequence[str], where: str) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"{where}: a text must be Unicode, but {text!r:.100} has half of a surrogate pair: correct or remove it"
            ) from None
