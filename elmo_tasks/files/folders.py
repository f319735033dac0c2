"""The files of a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files_below"]


def files_below(folder: Path) -> Iterator[Path]:
    """
    The files of a folder, however deep, in no order. Links to folders are followed, as corpora are often put together
    of such; a folder that several links lead to, or that holds a link to itself, is read once.

    # Parameters

    folder
        Where to look.
    """
    seen = {os.path.realpath(folder)}
    for parent, folders, files in os.walk(folder, followlinks=True):
        new = []
        for name in sorted(folders):
            place = os.path.realpath(os.path.join(parent, name))
            if place not in seen:
                seen.add(place)
                new.append(name)
        # What is left of it is walked.
        folders[:] = new
        yield from (path for name in files if (path := Path(parent, name)).is_file())
