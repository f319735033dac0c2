"""The files of a folder, and of a pattern."""

import glob
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["files_below", "matches"]


def files_below(folder: Path, *, with_broken_links: bool = False) -> Iterator[Path]:
    """
    The files of a folder, however deep, in no order. Links to folders are followed, as corpora are often put together
    of such, if they lead to other folders than those that are below it without links; each folder is read once.

    # Parameters

    folder
        Where to look.
    with_broken_links
        Whether links to files that are not there are files too.
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
            for path in (Path(parent, name) for name in files):
                if path.is_file() or (with_broken_links and path.is_symlink()):
                    yield path


def matches(pattern: str) -> list[str]:
    """
    The files and folders that a pattern like `news/*.txt` names; a folder at its beginning that is there is no pattern,
    whatever its name.

    # Parameters

    pattern
        As `glob.glob` takes it, with `**` for folders at any depth.
    """
    folder, rest = pattern, ""
    while folder and not os.path.isdir(folder):
        folder, name = os.path.split(folder)
        rest = os.path.join(name, rest) if rest else name
    # A path has one name, but the `..` after a link stays: it is above the folder that the link leads to.
    return [str(Path(path)) for path in glob.glob(os.path.join(glob.escape(folder), rest), recursive=True)]
