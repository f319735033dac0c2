"""The tokens of a data file on disk: spaCy's rules take most of the time in which one is read."""

import hashlib
import logging
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
from allennlp.data import Token, Tokenizer

from elmo_tasks.data.spacy_blank_tokenizer import SpacyBlankTokenizer
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.checksums import sha256_of
from elmo_tasks.files.ownership import check_ownership

__all__ = ["cached_tokens"]

logger = logging.getLogger(__name__)

# A folder in that of the layer cache. The number changes when the files do.
_FOLDER = "tokens-1"
_BYTES_OF_KEY = 16
_OF_ZIP = (zipfile.BadZipFile, zlib.error, struct.error)


@contextmanager
def cached_tokens(tokenizer: Tokenizer, path: str | os.PathLike[str]) -> Iterator[Tokenizer]:
    """
    A tokenizer for the texts of a data file, in the block in which the file is read. Where `ELMO_TASKS_CACHE` names a
    folder, their tokens are kept there at the end of the block, and taken from there by the next one, without spaCy. A
    block that ends early keeps nothing.

    The key is the content of the file, the language of the tokenizer and the version of spaCy. A cache that cannot be
    used, or that other users could have written to (see `check_ownership`), is a warning and not an error.

    # Parameters

    tokenizer
        A `SpacyBlankTokenizer`; another one is returned as it is, since its settings are not known.
    path
        The data file.
    """
    folder = os.environ.get("ELMO_TASKS_CACHE")
    if not folder or not isinstance(tokenizer, SpacyBlankTokenizer):
        yield tokenizer
        return
    try:
        file = _file(Path(folder).expanduser(), tokenizer, Path(path))
        known = _read(file)
    except OSError as error:
        logger.warning("the tokens of %s are not cached: %s", path, error)
        yield tokenizer
        return
    remembering = _RememberingTokenizer(tokenizer, known)
    yield remembering
    if remembering.has_more:
        try:
            _write(file, remembering.places)
        except OSError as error:
            logger.warning("the tokens of %s are not cached: %s", path, error)


class _RememberingTokenizer(Tokenizer):
    """
    # Parameters

    tokenizer
        Makes the tokens of texts that are not known.
    places
        By the key of a text, the first character and the length of each of its tokens: an array of shape `(n, 2)`.
    """

    def __init__(self, tokenizer: SpacyBlankTokenizer, places: dict[bytes, np.ndarray]) -> None:
        self._tokenizer = tokenizer
        self.places = places
        self.has_more = False

    def tokenize(self, text: str) -> list[Token]:
        """The tokens of the tokenizer, with their places."""
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_BYTES_OF_KEY).digest()
        places = self.places.get(key)
        if places is None:
            tokens = self._tokenizer.tokenize(text)
            found = [(token.idx, len(token.text)) for token in tokens]
            self.places[key] = np.array(found, np.int32).reshape(-1, 2)
            self.has_more = True
            return tokens
        return [Token(text[start : start + length], start, start + length) for start, length in places.tolist()]


def _file(folder: Path, tokenizer: SpacyBlankTokenizer, path: Path) -> Path:
    """Where the tokens of a file are kept, in a folder that this user alone can have written to."""
    # Not its parents: a path from another machine creates no folders.
    for made in (folder, folder / _FOLDER):
        made.mkdir(mode=0o700, exist_ok=True)
        check_ownership(made)
    settings = hashlib.blake2b(tokenizer.settings.encode(), digest_size=8).hexdigest()
    return folder / _FOLDER / f"{sha256_of(path)}-{settings}.npz"


def _read(file: Path) -> dict[bytes, np.ndarray]:
    """The places of the tokens of each text by its key; none if the file is not there or damaged."""
    if not file.exists():
        return {}
    check_ownership(file)
    try:
        with np.load(file, allow_pickle=False) as arrays:
            # Reading checks the checksum of each.
            keys, counts, places = (arrays[name] for name in ("keys", "counts", "places"))
        ends = np.concatenate([[0], np.cumsum(counts)])
        if keys.shape != (len(counts), _BYTES_OF_KEY) or places.shape != (ends[-1], 2):
            raise ValueError("its arrays do not match")
        return {key.tobytes(): places[start:end] for key, (start, end) in zip(keys, pairwise(ends), strict=True)}
    # A RuntimeError is an array that says to be encrypted, or compressed in a way that is not known.
    except (ValueError, KeyError, EOFError, OverflowError, RuntimeError, SyntaxError, *_OF_ZIP) as error:
        logger.warning("%s is damaged, and is written again: %s", file, error)
        return {}


def _write(file: Path, places: dict[bytes, np.ndarray]) -> None:
    with atomic_file(file) as temporary, open(temporary, "wb") as stream:
        np.savez(
            stream,
            keys=np.frombuffer(b"".join(places), np.uint8).reshape(-1, _BYTES_OF_KEY),
            counts=np.array([len(of_text) for of_text in places.values()], np.int64),
            places=np.concatenate(list(places.values())),
        )
