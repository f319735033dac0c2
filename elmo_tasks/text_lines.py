"""Files of lines, with errors that name the line."""

from collections.abc import Iterator

__all__ = ["numbered_lines"]


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """
    The lines of a file without their ends, each with its number from 1 on.

    # Raises

    `ValueError`
        If a line is not UTF-8, or the file has carriage returns where line feeds belong; with file and line.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                # A file from Windows may begin with a byte order mark, which is no part of its first word.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}: the file must be UTF-8, but byte {error.start + 1} of this line is "
                    f"{line[error.start]:#04x}: convert it, with iconv for example"
                ) from None
            if "\r" in text:
                raise ValueError(
                    f"{path}, line {number}: lines must end with a line feed, but here is a carriage return alone: "
                    "convert the file, with `tr '\\r' '\\n'` for example"
                )
            yield number, text
