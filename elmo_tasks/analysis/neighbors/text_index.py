"""The index of a text, which says which biLM it is of."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from elmo_tasks.analysis.neighbors.builder import build_index
from elmo_tasks.analysis.neighbors.files import FORM, Layer
from elmo_tasks.analysis.neighbors.index import NeighborIndex
from elmo_tasks.analysis.neighbors.text import read_text
from elmo_tasks.vectors.elmo import Elmo
from elmo_tasks.vectors.pretrained import NAMED_BILMS, pretrained_files

__all__ = ["index_text"]

logger = logging.getLogger(__name__)

# Sentences, for the script of a text.
_LOOKED_AT = 500


def index_text(
    corpus: str,
    folder: Path,
    bilm: str,
    *,
    layer: Layer | Sequence[Layer] = "top",
    dtype: Literal["float16", "float32", "int8"] = "float16",
    precision: Literal["float32", "bf16"] = "float32",
    batch_tokens: int = 4096,
    nfc: bool = True,
) -> NeighborIndex:
    """
    Builds an index that says which biLM it is of, so that a query can check it. A text whose letters are mostly of a
    script that the biLM has never seen is a warning.

    # Parameters

    corpus
        See `read_text`.
    folder, layer, dtype, batch_tokens
        See `build_index`.
    bilm, precision
        See `Elmo.from_pretrained`.
    nfc
        Whether the text is put into Unicode's form NFC, and each query too.

    # Raises

    See `build_index` and `read_text`; and `ValueError` or `FileNotFoundError` if the biLM is not there.
    """
    # A query may come from another folder.
    named = bilm if bilm in NAMED_BILMS else os.path.abspath(Path(bilm).expanduser())
    about = {"bilm": named, "corpus": corpus}
    if nfc:
        about[FORM] = "NFC"
    return build_index(
        Elmo.from_files(*pretrained_files(bilm), precision=precision),
        read_text(corpus, nfc=nfc),
        folder,
        layer=layer,
        dtype=dtype,
        about=about,
        batch_tokens=batch_tokens,
    )
