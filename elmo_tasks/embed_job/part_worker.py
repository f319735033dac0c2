"""The worker that embeds part after part: in the process of the job, in one of several, or as an actor of Ray."""

import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.part_file import PartKind, PartOrigin, part_path, write_part
from elmo_tasks.embed_job.memory import bound_kernels, return_free_memory
from elmo_tasks.embed_job.options import EmbedOptions
from elmo_tasks.embed_job.text_parts import LinePart
from elmo_tasks.unicode_text import in_nfc

if TYPE_CHECKING:
    from elmo_tasks.bilm.cut_words import CutWords
    from elmo_tasks.vectors.elmo import Elmo

__all__ = ["PartDone", "PartWork", "PartWorker", "load_elmo"]


@dataclass(frozen=True)
class PartWork:
    """
    What all workers of a job do with its parts.

    # Parameters

    options
        The vectors.
    folder
        Of the files of parts; on several machines, one that all of them see.
    kind
        The format of those files.
    job
        The digest of the fingerprint, which each file keeps.
    weights
        The digest of the biLM: in another process, or on another machine, its name may be that of another one.
    """

    options: EmbedOptions
    folder: Path
    kind: PartKind
    job: str
    weights: str


@dataclass(frozen=True)
class PartDone:
    """
    # Parameters

    number
        Of the part.
    n_tokens
        How many words have been embedded.
    cut_words
        How many of them were cut; `None` if they were not counted.
    """

    number: int
    n_tokens: int
    cut_words: "CutWords | None" = field(default=None, compare=False)


def load_elmo(options: EmbedOptions) -> "Elmo":
    """The biLM of the options, for a process that computes long."""
    bound_kernels()
    from elmo_tasks.vectors.elmo import Elmo
    from elmo_tasks.vectors.pretrained import pretrained_files

    # By its files: the job itself says if the text is of another script, once.
    files = options.bilm if isinstance(options.bilm, tuple) else pretrained_files(options.bilm)
    return Elmo.from_files(*files, device=options.device, precision=options.precision)


class PartWorker:
    """
    Embeds parts and writes their files.

    # Parameters

    work
        Options, folder and digests.
    elmo
        `None`: it is loaded for the first part, so that an error comes from `run`, in a process of any kind.
    max_threads
        The largest number of threads of torch; it is set for the whole process.
    """

    def __init__(self, work: PartWork, *, elmo: "Elmo | None" = None, max_threads: int | None = None) -> None:
        self._work = work
        self._options = work.options
        self._elmo = elmo
        self._max_threads = max_threads

    def run(self, part: LinePart) -> PartDone:
        """
        Embeds a part and writes its file.

        # Raises

        See `embed` and `write`.
        """
        embedded, done = self.embed(part)
        self.write(part, embedded)
        return done

    def embed(self, part: LinePart) -> tuple[EmbeddedPart, PartDone]:
        """
        Embeds a part, without its file.

        # Raises

        `ValueError`
            If an option has a wrong value, a vector is more than float16 can hold, or the biLM is another one here.
        """
        if self._elmo is None:
            import torch

            if self._max_threads is not None:
                torch.set_num_threads(min(self._max_threads, torch.get_num_threads()))
            self._elmo = self._loaded()
        words = [self._words(line) for line in part.lines]
        # Not at the top: the options of the command are printed without torch.
        from elmo_tasks.bilm.cut_words import CutWords

        cut_words = CutWords(self._elmo.bilm.word_rows)
        for sentence in words:
            cut_words.add(sentence)
        vectors = self._elmo.embed(words, **self._options.arguments())
        for row, array in enumerate(vectors):
            if not np.isfinite(array).all():
                raise ValueError(
                    f"vectors must be finite, but those of line {part.first + row + 1} are not: use smaller weights, "
                    "or a smaller gamma"
                )
        if self._options.dtype == "float16":
            vectors = [_halved(array, part.first + row) for row, array in enumerate(vectors)]
        return_free_memory()
        embedded = EmbeddedPart(part.first, [" ".join(sentence) for sentence in words], vectors)
        return embedded, PartDone(part.number, sum(map(len, words)), cut_words)

    def _loaded(self) -> "Elmo":
        from elmo_tasks.bilm.weights_state import bilm_digest

        elmo = load_elmo(self._options)
        found = bilm_digest(elmo.bilm.options, elmo.bilm.state_dict()).hex()
        if found != self._work.weights:
            raise ValueError(
                f"all processes of a job must have the same biLM, but {self._options.bilm!r} has the digest {found} on "
                f"{platform.node()}, and {self._work.weights} where the job was started: copy its files to all machines"
            )
        return elmo

    def write(self, part: LinePart, embedded: EmbeddedPart) -> None:
        """
        Writes the file of a part, which replaces an older one: a worker that is killed before the end leaves no part,
        and one that repeats it writes the same.

        # Raises

        `OSError`
            If the file cannot be written.
        """
        origin = PartOrigin.of(part.summary(), self._work.job)
        write_part(part_path(self._work.folder, part.number, self._work.kind), embedded, origin)

    def _words(self, line: str) -> list[str]:
        if self._options.nfc:
            line = in_nfc(line)
        if not self._options.tokenize:
            return line.split()
        from elmo_tasks.tokenization import blank_tokenizer

        return blank_tokenizer()(line)


def _halved(array: np.ndarray, index: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        halved = array.astype(np.float16)
    if not np.isfinite(halved).all():
        raise ValueError(
            f"float16 holds numbers up to 65504, but in the vectors of line {index + 1} the largest is "
            f"{np.abs(array).max():g}: use float32, or a smaller gamma"
        )
    return halved
