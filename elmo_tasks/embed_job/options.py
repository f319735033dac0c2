"""Options of a job, and the fingerprint that tells one job from another."""

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from elmo_tasks.embed_job.text_parts import TextSummary
from elmo_tasks.version import __version__

if TYPE_CHECKING:
    from elmo_tasks.bilm import Bilm
    from elmo_tasks.vectors.elmo import EmbedArguments, Precision
    from elmo_tasks.vectors.layer_selection import Layers
    from elmo_tasks.vectors.pooling import Pool

__all__ = ["DTYPES", "WEIGHTS", "EmbedOptions", "differences", "digest_of_job", "fingerprint"]

DTYPES = ("float32", "float16")

WEIGHTS, LINES = "weights of the biLM", "lines of the text"
"""The entry of a fingerprint that is their digest, see `bilm_digest`."""


@dataclass(frozen=True)
class EmbedOptions:
    """
    The vectors that are made of the lines of a text.

    # Parameters

    bilm
        A name or a folder: see `Elmo.from_pretrained`. Or two files: see `Elmo.from_files`.
    layers, weights, gamma, pool, batch_tokens
        See `Elmo.embed_iter`.
    tokenize
        Whether spaCy's rules split a line into words, as `Elmo.embed` splits a string. `False`: white space does.
    dtype
        Of the vectors in the file.
    device, precision
        See `Elmo.from_pretrained`.
    part_lines
        How many lines are done together or not at all.
    nfc
        Whether the text is put into Unicode's form NFC first, in which nearly all text is. The biLM knows characters by
        their bytes or code points, so that a word has other vectors in another form.

    # Raises

    `ValueError`
        If `dtype` is unknown or `part_lines` below 1; the rest is checked where it is used.
    """

    bilm: str | tuple[str, str] = "small-open"
    layers: "Layers" = "mix"
    weights: tuple[float, ...] | None = None
    gamma: float = 1.0
    pool: "Pool | None" = None
    batch_tokens: int = 4096
    tokenize: bool = False
    dtype: Literal["float32", "float16"] = "float32"
    device: str | None = None
    precision: "Precision | None" = None
    part_lines: int = 500
    nfc: bool = True

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, but is {self.dtype!r}")
        if self.part_lines < 1:
            raise ValueError(f"part_lines must be at least 1, but is {self.part_lines}")

    def arguments(self) -> "EmbedArguments":
        """Those of `Elmo.embed`, without a progress bar."""
        return {
            "layers": self.layers,
            "weights": self.weights,
            "gamma": self.gamma,
            "pool": self.pool,
            "batch_tokens": self.batch_tokens,
            "progress": False,
        }


def fingerprint(options: EmbedOptions, summary: TextSummary, bilm: "Bilm") -> dict[str, Any]:
    """
    All that the vectors of a job depend on, so that parts of different jobs are never combined. It is JSON, and is kept
    in the finished file too. The biLM is identified by its weights, wherever its files are.
    """
    import torch

    from elmo_tasks.bilm.weights_state import bilm_digest

    options_now = {key: value for key, value in asdict(options).items() if key != "bilm"}
    found = {
        **options_now,
        "precision": options.precision or "float32",
        WEIGHTS: bilm_digest(bilm.options, bilm.state_dict()).hex(),
        **({} if bilm.options.start_state == "zero" else {"start state of the biLM": bilm.options.start_state}),
        "text": summary.digest,
        LINES: summary.n_lines,
        "elmo_tasks": __version__,
        "torch": torch.__version__,
        **({"spacy": version("spacy")} if options.tokenize else {}),
    }
    # As it is read from a file: a tuple is a list there.
    as_json: dict[str, Any] = json.loads(json.dumps(found))
    return as_json


def digest_of_job(job: dict[str, Any]) -> str:
    """A short name for a fingerprint, which each part keeps."""
    return hashlib.blake2b(json.dumps(job, sort_keys=True).encode(), digest_size=16).hexdigest()


def differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """The differences of two fingerprints, in words; the empty string if there are none."""
    names = [*now, *(name for name in before if name not in now)]
    return "; ".join(
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    )
