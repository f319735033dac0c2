"""Vectors of sentences in HDF5: arrays and strings with checksums, and the layouts that AllenNLP's readers expect."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

__all__ = ["VectorLayout", "check_sentence_keys", "write_array", "write_sentence_index", "write_strings"]

_MAX_CHUNK = 2**24
# Bytes of strings with their padding, whatever they have without it.
_MAX_PADDED = 2**24
# HDF5 allows strings and chunks of up to 4 GiB.
_MAX_WIDTH = 2**30
_STRINGS_AT_ONCE = 1000


@dataclass(frozen=True)
class VectorLayout:
    """
    The names of the arrays in a file, and what is next to them.

    # Parameters

    sentence_keys
        Whether the vectors of a sentence have the sentence as their name, and not its index.
    with_sentences
        Whether there is an array `sentences`, with the words of each.
    with_index
        Whether there is `sentence_to_index`: see `write_sentence_index`.
    """

    sentence_keys: bool = False
    with_sentences: bool = True
    with_index: bool = True

    @classmethod
    def of_allennlp(cls, *, forget_sentences: bool = False, use_sentence_keys: bool = False) -> "VectorLayout":
        """The layout of AllenNLP before 1.0 with these options: nothing but the vectors, and perhaps the index."""
        with_index = not forget_sentences and not use_sentence_keys
        return cls(sentence_keys=use_sentence_keys, with_sentences=False, with_index=with_index)


def write_array(file: h5py.File, name: str, array: np.ndarray) -> None:
    """Writes an array with a checksum."""
    # One chunk, since each has its entry in the file; and h5py's choice where that would be too large.
    chunks = array.shape if array.nbytes <= _MAX_CHUNK else True
    file.create_dataset(name, data=array, **({"chunks": chunks, "fletcher32": True} if array.size else {}))


def write_sentence_index(file: h5py.File, sentences: Sequence[str]) -> None:
    """
    Writes `sentence_to_index`, which AllenNLP's readers look for: an array of one string, a JSON object with the index
    of each sentence as a string; of equal sentences the last.
    """
    places = {sentence: str(index) for index, sentence in enumerate(sentences)}
    write_strings(file, "sentence_to_index", [json.dumps(places).encode()])


def write_strings(file: h5py.File, name: str, strings: list[bytes]) -> None:
    """
    Writes strings of one length, padded, since HDF5 has no checksum for strings of variable length. Only where one of
    them is so much longer than the others that reading them would take too much memory, they are of variable length.
    """
    width = max(map(len, strings), default=0)
    if width > _MAX_WIDTH or not 0 < width * len(strings) <= max(_MAX_PADDED, 8 * sum(map(len, strings))):
        file.create_dataset(name, data=strings, dtype=h5py.string_dtype())
        return
    # Compressed, the padding takes no room.
    shape, dtype = (len(strings),), h5py.string_dtype(length=width)
    filters: dict[str, Any] = {"fletcher32": True, "compression": "gzip", "compression_opts": 1}
    data = file.create_dataset(name, shape, dtype, chunks=True, **filters)
    for start in range(0, len(strings), _STRINGS_AT_ONCE):
        end = start + _STRINGS_AT_ONCE
        data[start:end] = np.array(strings[start:end], dtype)


def check_sentence_keys(lines: Iterable[tuple[int, str]], source: object) -> None:
    """
    Checks whether sentences can be the names of arrays in one file. In a name a slash separates a group from what is in
    it, so that two sentences may stand in each other's way.

    # Parameters

    lines
        The number of the line of each sentence, and the sentence.
    source
        The file, for the message.

    # Raises

    `ValueError`
        If a sentence is blank, occurs twice, or is no name; with the line.
    """
    remedy = "use the numbers of the lines as keys"
    known: dict[tuple[str, ...], int] = {}
    for number, sentence in lines:
        path = tuple(part for part in sentence.split("/") if part not in ("", "."))
        if not path or "\0" in sentence:
            raise ValueError(f"{source}, line {number}: {sentence[:60]!r} cannot be a key of HDF5: {remedy}")
        if path in known:
            raise ValueError(
                f"{source}, line {number}: each sentence must occur once to be a key, but {sentence[:60]!r} is in line "
                f"{known[path]} too: {remedy}"
            )
        known[path] = number
    for path, number in known.items():
        # As the name of a group and of an array.
        of_group = next((known[path[:n]] for n in range(1, len(path)) if path[:n] in known), None)
        if of_group is not None:
            raise ValueError(
                f"{source}, line {number}: '/' in a key of HDF5 separates a group from its arrays, but what is before "
                f"it here is the key of line {of_group}: {remedy}"
            )
