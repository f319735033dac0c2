"""Text from files as it may be shown on a terminal or in one line."""

import re

__all__ = ["one_line", "printable", "printable_lines"]

# Control characters, which move the cursor or give orders to a terminal; ends of lines that are not a line feed;
# characters that change the direction of what follows; and halves of surrogate pairs, which cannot be encoded.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Text with escapes in place of control characters, as in `\\u001b`; all other characters stay as they are."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def printable_lines(text: str) -> str:
    """As `printable`, but line feeds stay. JSON stays the same JSON."""
    return "\n".join(map(printable, text.split("\n")))


def one_line(message: object) -> str:
    """A message, for example an error, in one line without control characters."""
    return printable(" ".join(str(message).split()))
