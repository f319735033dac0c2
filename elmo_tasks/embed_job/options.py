"""What vectors a job is to make, and what tells one job from another."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from elmo_tasks.embed_job.text_parts import TextSummary
from elmo_tasks.version import __version__

if TYPE_CHECKING:
    from elmo_tasks.bilm import Bilm

__all__ = ["EmbedOptions", "differences", "fingerprint"]

DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class EmbedOptions:
    """
    What vectors are made of the lines of a text.

    # Parameters

    bilm : `str`, optional (default = `"small-open"`)
        A name or a folder: see `Elmo.from_pretrained`.
    layers, weights, gamma, pool, batch_tokens
        See `Elmo.embed_iter`.
    tokenize : `bool`, optional (default = `False`)
        Whether spaCy's rules split a line into words. `False`: white space does.
    dtype : `Literal["float32", "float16"]`, optional (default = `"float32"`)
        Of the vectors in the file.
    device, precision
        See `Elmo.from_pretrained`.
    part_lines : `int`, optional (default = `500`)
        Lines that are done together or not at all.

    # Raises

    `ValueError`
        If `dtype` or `part_lines` is none of these; the rest is checked where it is used.
    """

    bilm: str = "small-open"
    layers: Literal["mix", "all", "top"] | int = "mix"
    weights: tuple[float, ...] | None = None
    gamma: float = 1.0
    pool: Literal["mean", "max", "first-last"] | None = None
    batch_tokens: int = 4096
    tokenize: bool = False
    dtype: Literal["float32", "float16"] = "float32"
    device: str | None = None
    precision: Literal["float32", "tf32", "bf16"] | None = None
    part_lines: int = 500

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, but is {self.dtype!r}")
        if self.part_lines < 1:
            raise ValueError(f"a part must have at least 1 line, but is to have {self.part_lines}")


def fingerprint(options: EmbedOptions, summary: TextSummary, bilm: "Bilm") -> dict[str, Any]:
    """
    All that the vectors of a job depend on, so that parts of one job are never put together with those of another. It
    is JSON, and is kept in the finished file too. The biLM is in it by its numbers, wherever its files are.
    """
    import torch

    digest = hashlib.blake2b(repr(bilm.options).encode(), digest_size=16)
    for name, weight in sorted(bilm.state_dict().items()):
        digest.update(repr((name, tuple(weight.shape))).encode())
        digest.update(weight.float().cpu().contiguous().numpy().data)
    options_now = {key: value for key, value in asdict(options).items() if key != "bilm"}
    found = {
        **options_now,
        "precision": options.precision or "float32",
        "weights of the biLM": digest.hexdigest(),
        "text": summary.digest,
        "lines of the text": summary.n_lines,
        "elmo_tasks": __version__,
        "torch": torch.__version__,
    }
    # As it will be read again: a tuple is a list there.
    as_json: dict[str, Any] = json.loads(json.dumps(found))
    return as_json


def differences(before: dict[str, Any], now: dict[str, Any]) -> str:
    """What differs in two fingerprints, in words; the empty string if nothing does."""
    names = [*now, *(name for name in before if name not in now)]
    return "; ".join(
        f"{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    )
