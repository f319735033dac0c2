"""Text from files as it may be shown on a terminal or in one line, and a terminal that shows nothing more."""

import os
import re
import select
import sys

__all__ = ["UNREAD", "drop_unread_stdout", "one_line", "printable", "printable_lines"]

UNREAD = 141
"""The exit status of a process that SIGPIPE has ended, as a shell reports it."""

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


def drop_unread_stdout() -> bool:
    """
    Whether nobody reads what is printed, as after `| head`. The rest of it, which Python would write when it ends, then
    goes nowhere.
    """
    try:
        poll = select.poll()
        poll.register(sys.stdout, 0)
    # There is no stdout, or it is no file, or the system has no such call.
    except (AttributeError, OSError, TypeError, ValueError):
        return False
    if not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        return False
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
    return True
