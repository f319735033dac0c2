"""The JSON files of SQuAD 1.1, with errors that name the place."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from elmo_tasks.data.formats.json_objects import check_unicode, json_object
from elmo_tasks.files.text_lines import whole_text

__all__ = ["Answer", "Question", "read_questions"]

_LAYOUT = '{"data": [{"paragraphs": [{"context": "", "qas": [{"id": "", "question": "", "answers": []}]}]}]}'
_TYPES = {list: "a list", str: "a text", int: "a number"}


class Answer(NamedTuple):
    """A part of a paragraph."""

    text: str
    # Of its first character in the paragraph.
    start: int


class Question(NamedTuple):
    """A question about a paragraph, and its correct answers, if they are known."""

    # `None` in a prediction; a file always has one.
    id: str | None
    text: str
    paragraph: str
    answers: tuple[Answer, ...] | None


def read_questions(path: str) -> Iterator[Question]:
    """
    The questions of a file in the order of the file; those of a paragraph share one object for its text. A file
    without `answers` is for prediction.

    # Raises

    `ValueError`
        If the file is not in the format of SQuAD 1.1, a question has no id or that of another, or an answer is not at
        its place; with file and place.
    """
    places: dict[str | None, str] = {}
    has_answers = None
    for article, at_article in _items(_load(path), "data", path):
        for paragraph, at_paragraph in _items(article, "paragraphs", at_article):
            text = _value(paragraph, "context", str, at_paragraph)
            if not text.strip():
                raise ValueError(f"{at_paragraph}.context must hold at least one word, but is {text!r}")
            for entry, at_entry in _items(paragraph, "qas", at_paragraph):
                question = _question(entry, text, at_entry)
                if question.id in places:
                    raise ValueError(
                        f"{at_entry}: the id of a question must be its own, by which its answer is found, but "
                        f"{question.id!r} is that of {places[question.id].removeprefix(f'{path}: ')} too"
                    )
                places[question.id] = at_entry
                if has_answers not in (None, question.answers is not None):
                    raise ValueError(
                        f"{at_entry} (question {question.id}): either all questions of a file must have answers or "
                        f"none, but this one has {'some' if question.answers else 'none'} and those before have "
                        f"{'some' if has_answers else 'none'}: split the file in two"
                    )
                has_answers = question.answers is not None
                yield question
    if not places:
        raise ValueError(f"{path} must hold at least one question, as in {_LAYOUT}, but holds none")


def _load(path: str) -> dict[str, Any]:
    text = whole_text(path)
    try:
        return json_object(text)
    except ValueError as error:
        where = f"{path}, line {error.lineno}" if isinstance(error, json.JSONDecodeError) else path
        problem = getattr(error, "msg", error)
    raise ValueError(f"{where}: the file must be one JSON object like {_LAYOUT}, but is not: {problem}")


def _value(entry: dict[str, Any], key: str, kind: type, place: str) -> Any:
    if key not in entry:
        raise ValueError(
            f"{place} must have the key {key!r}, as in {_LAYOUT}, but has {', '.join(map(repr, entry)) or 'none'}"
        )
    value = entry[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ValueError(f"{place}: {key!r} must be {_TYPES[kind]}, but is {_shown(value)}")
    if isinstance(value, str):
        check_unicode(value, f"{place}: {key!r}")
    return value


def _shown(value: object) -> str:
    try:
        return json.dumps(value)[:100]
    except RecursionError:
        # Nested as deeply as can just be read.
        return "a list or an object"


def _items(entry: dict[str, Any], key: str, place: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The objects of a list, each with its place in the file."""
    # The first key follows the name of the file.
    at_key = f"{place}.{key}" if place.endswith("]") else f"{place}: {key}"
    for number, item in enumerate(_value(entry, key, list, place)):
        if not isinstance(item, dict):
            raise ValueError(f"{at_key}[{number}] must be an object, but is {_shown(item)}")
        yield item, f"{at_key}[{number}]"


def _question(entry: dict[str, Any], paragraph: str, place: str) -> Question:
    identifier = _value(entry, "id", str, place)
    if not identifier.strip():
        raise ValueError(f"{place}: 'id' must name the question, but is {identifier!r}")
    text = _value(entry, "question", str, place)
    if not text.strip():
        raise ValueError(f"{place} (question {identifier}) must have a text, but has {text!r}: drop it")
    if "answers" not in entry:
        return Question(identifier, text, paragraph, None)
    answers = tuple(
        _answer(answer, paragraph, identifier, at_answer) for answer, at_answer in _items(entry, "answers", place)
    )
    if not answers or entry.get("is_impossible", False):
        raise ValueError(
            f"{place} (question {identifier}): a question must have an answer in its paragraph, but this one has none: "
            "SQuAD 2.0 has such questions, SQuAD 1.1 does not; drop them, or the key 'answers' if you want predictions "
            "only"
        )
    return Question(identifier, text, paragraph, answers)


def _answer(entry: dict[str, Any], paragraph: str, identifier: str, place: str) -> Answer:
    text = _value(entry, "text", str, place)
    start = _value(entry, "answer_start", int, place)
    if not text.strip():
        raise ValueError(f"{place} (question {identifier}): an answer must have at least one word, but is {text!r}")
    found = paragraph[max(start, 0) : max(start, 0) + len(text)]
    if start < 0 or found != text:
        at = paragraph.find(text)
        raise ValueError(
            f"{place} (question {identifier}): the paragraph must have the answer {text!r} at character {start}, but "
            f"has {found!r} there: " + (f"set 'answer_start' to {at}" if at >= 0 else "the paragraph does not have it")
        )
    return Answer(text, start)
