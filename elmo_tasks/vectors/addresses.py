"""Addresses of biLMs, as old programs give them: files at them are downloaded once."""

import hashlib
import os
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit

from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.weights import read_weights
from elmo_tasks.vectors.pretrained import (
    MAX_OPTIONS_BYTES,
    NAMED_BILMS,
    cache_home,
    cached_file,
    max_weight_bytes,
    pretrained_files,
)

__all__ = ["DEFAULT_OPTIONS_FILE", "DEFAULT_WEIGHT_FILE", "local_files"]

# The address of the authors' files in old programs, and that of the same files today.
_OLD_SERVER = "https://s3-us-west-2.amazonaws.com/allennlp/"
_SERVER = "https://allennlp.s3.amazonaws.com/"
_DEFAULT = f"{_OLD_SERVER}models/elmo/2x4096_512_2048cnn_2xhighway/elmo_2x4096_512_2048cnn_2xhighway"
DEFAULT_OPTIONS_FILE = f"{_DEFAULT}_options.json"
DEFAULT_WEIGHT_FILE = f"{_DEFAULT}_weights.hdf5"


def local_files(options_file: str | PathLike[str], weight_file: str | PathLike[str]) -> tuple[Path, Path]:
    """
    Local paths of the files of a biLM. What is at an address is downloaded at the first use, with the checks of
    `pretrained_files`; files of a biLM that has a name are kept under that name.

    # Parameters

    options_file, weight_file
        Paths, or addresses that begin with `https://`.

    # Returns

    `Tuple[Path, Path]`
        The options and the weights.

    # Raises

    `ValueError`
        If a file is not that of a biLM, or has changed since it was downloaded.
    `OSError`
        If it cannot be downloaded, or other users could have written to the cache.
    """
    addresses = [_today(file) for file in (options_file, weight_file)]
    for name, known in NAMED_BILMS.items():
        if addresses == [f"{known.url}options.json", f"{known.url}weights.hdf5"]:
            return pretrained_files(name)
    options_file = _file(addresses[0], "options.json", MAX_OPTIONS_BYTES, BilmOptions.from_file)
    if "://" not in addresses[1]:
        return options_file, Path(addresses[1]).expanduser()
    options = BilmOptions.from_file(options_file)
    check = partial(read_weights, options=options)
    # The ending tells the format.
    name = "weights.safetensors" if urlsplit(addresses[1]).path.endswith(".safetensors") else "weights.hdf5"
    return options_file, _file(addresses[1], name, max_weight_bytes(options), check)


def _today(file: str | PathLike[str]) -> str:
    address = os.fspath(file)
    return f"{_SERVER}{address.removeprefix(_OLD_SERVER)}" if address.startswith(_OLD_SERVER) else address


def _file(address: str, name: str, max_bytes: int, check: Callable[[Path], object]) -> Path:
    if "://" not in address:
        return Path(address).expanduser()
    folder = cache_home() / "addresses" / hashlib.sha256(address.encode()).hexdigest()[:16]
    return cached_file(address, folder / name, what=f"the file {address}", max_bytes=max_bytes, check=check)
