"""Deprecated: use `elmo_tasks.text`."""

import os
import sys

from elmo_tasks.text import one_line

__all__ = ["UNREAD", "drop_unread_stdout", "one_line", "printable", "printable_lines"]

UNREAD = 141


def printable(text: str) -> str:
    return text


printable_lines = printable


def drop_unread_stdout() -> bool:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True
