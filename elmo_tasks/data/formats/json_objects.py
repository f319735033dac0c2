"""JSON objects of data files, from which strangers' mistakes come as a `ValueError`."""

import json
from typing import Any

__all__ = ["check_unicode", "json_object"]


def json_object(text: str) -> dict[str, Any]:
    """
    # Parameters

    text
        A line or a file.

    # Returns

    `Dict[str, Any]`
        The object that it is.

    # Raises

    `json.JSONDecodeError`
        If it is not JSON; with the line in the text.
    `ValueError`
        If it is another value than an object, a key comes twice in an object, or brackets are nested too deeply; the
        message is only what is wrong.
    """
    try:
        content = json.loads(text, object_pairs_hook=_with_each_key_once)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError(f"it is {'a list' if isinstance(content, list) else 'one value'}")
    return content


def _with_each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"an object has the key {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return content


def check_unicode(text: str, where: str) -> None:
    r"""
    JSON can have half a character, `"\ud800"`, which no file can be written with, nor any character of the biLM; and
    the character NUL, which no text has.

    # Raises

    `ValueError`
        If the text has one of them; with `where`, the place as an error names it.
    """
    if "\0" in text:
        raise ValueError(f"{where}: a text must not have the character NUL, but {text!r:.100} has it: remove it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{where}: a text must be Unicode, but character {error.start + 1} is half of one, "
            f"\\u{ord(text[error.start]):04x} alone: remove it, or write both halves"
        ) from None
