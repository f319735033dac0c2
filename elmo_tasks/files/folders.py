"""The files of a folder."""

import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files_below"]


def files_below(folder: Path) -> Iterator[Path]:
    """
    The files of a folder, however deep, in no order. Links to folders are followed, as corpora are often put together
    of such, if they lead to other folders than those that are below it without links; each folder is read once.

    # Parameters

    folder
        Where to look.
    """
    seen: set[str] = set()
    links = [folder]
    while links:
        # A link comes after all folders that need none, so that a link to one of them changes no name.
        for parent, folders, files in os.walk(links.pop(0)):
            if os.path.realpath(parent) in seen:
                folders.clear()
                continue
            seen.add(os.path.realpath(parent))
            links += [path for name in sorted(folders) if (path := Path(parent, name)).is_symlink()]
            yield from (path for name in files if (path := Path(parent, name)).is_file())
