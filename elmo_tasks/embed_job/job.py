"""The job: a text in, a file with the vectors of its lines out."""

import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_tasks.embed_job.formats.embedded_part import EmbeddedPart
from elmo_tasks.embed_job.formats.output_format import Format, format_of
from elmo_tasks.embed_job.formats.part_file import PartOrigin, numbers_of_parts, part_path, read_part
from elmo_tasks.embed_job.job_folder import JobFolder
from elmo_tasks.embed_job.options import WEIGHTS, EmbedOptions, digest_of_job, fingerprint
from elmo_tasks.embed_job.part_worker import PartDone, PartWork, PartWorker, load_elmo
from elmo_tasks.embed_job.processes import embed_in_processes
from elmo_tasks.embed_job.ray_actors import embed_on_ray, options_on_ray
from elmo_tasks.embed_job.text_parts import LinePart, TextSummary, parts_of, summarize
from elmo_tasks.embed_job.this_process import embed_in_this_process
from elmo_tasks.files.atomic_files import atomic_file, check_not_input
from elmo_tasks.files.checksums import checksum_path
from elmo_tasks.files.text_lines import numbered_lines
from elmo_tasks.progress import progress_bar
from elmo_tasks.ray_session import require_ray

if TYPE_CHECKING:
    from elmo_tasks.bilm.cut_words import CutWords

__all__ = ["EmbedReport", "embed_file"]

logger = logging.getLogger(__name__)

# For the script of a text.
_LINES_LOOKED_AT = 500


@dataclass(frozen=True)
class EmbedReport:
    """
    # Parameters

    n_lines
        Of the text.
    n_tokens
        Words that this run has embedded, without those of an earlier run.
    seconds
        For them; with workers or Ray, starting those and reading their biLMs is a part of it.
    n_bytes
        Of the output.
    was_finished
        Whether an earlier run had made the output. It has been read, and is what was written then.
    """

    n_lines: int
    n_tokens: int
    seconds: float
    n_bytes: int
    was_finished: bool = False


def embed_file(
    text: Path,
    output: Path,
    options: EmbedOptions,
    *,
    format: str | Format | None = None,
    force: bool = False,
    resume: bool = False,
    workers: int | None = None,
    ray: str | None = None,
    show_progress: bool | None = None,
) -> EmbedReport:
    """
    Embeds the lines of a file, each of which is a sentence and keeps its index, blank ones too.

    What is done is kept part by part in the folder `OUTPUT.parts`. However a job was interrupted, it resumes from there
    with `resume`, and the finished output is the same as that of an undisturbed job: parts and their batches depend on
    the text and the options alone. Each part has a checksum and knows its lines and its job: one that is damaged, or of
    other lines, is computed again. The checksum of a finished file is written next to it, and compared when the job is
    called with `resume` again; a finished folder has those of its parts.

    # Parameters

    text, output
        The text, UTF-8, plain, `.gz` or `.xz`; and the file for the vectors.
    options
        The vectors.
    format
        `"hdf5"`, `"npz"`, `"parquet"` or `"parquet-folder"`; or a `Format`. `None`: the one that the ending of `output`
        names.
    force, resume
        Start again, and replace an output that is there; or resume an earlier run.
    workers
        How many processes, or actors on Ray. `None`: this process, or as many actors as the cluster has cores or GPUs.
        A script calls this below `if __name__ == "__main__":`, since processes import it.
    ray
        Address of a Ray cluster: see `ray_session`. The output is then a folder of Parquet files, in a place that all
        machines see.
    show_progress
        `None`: if stderr is a terminal.

    # Raises

    `ValueError`
        If the text or an option is wrong, an earlier run was another job, or its finished output is damaged.
    `OSError`
        If a file is not there, is there and must not be, or cannot be written. What is done is kept.
    `ModuleNotFoundError`
        If pyarrow, Ray or spaCy is needed and not installed.
    `RuntimeError`
        If a process or an actor has ended before its part was done. What is done is kept.
    `KeyboardInterrupt`
        After Ctrl-C, with a message that says how to resume. What is done is kept.
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be at least 1, but are {workers}")
    # Other names that begin with ~ are those of files.
    text, output = (path.expanduser() if path.parts[:1] == ("~",) else path for path in (text, output))
    if ray is not None:
        require_ray()
        options = options_on_ray(options)
    check_not_input(output, text)
    check_not_input(checksum_path(output), text)
    chosen = format if isinstance(format, Format) else format_of(output, format, is_on_ray=ray is not None)
    folder = JobFolder(output, chosen, force=force, resume=resume)
    return _Job(text, folder, options, workers, ray).run(show_progress)


class _Job:
    def __init__(
        self, text: Path, folder: JobFolder, options: EmbedOptions, workers: int | None, ray: str | None
    ) -> None:
        self._text = text
        self._folder = folder
        self._options = options
        self._workers = workers
        self._ray = ray

    def run(self, show_progress: bool | None) -> EmbedReport:
        signature = _signature(self._text)
        summary = summarize(self._text, self._options.part_lines)
        # On Ray the GPUs are on other machines; the biLM is read here for the fingerprint.
        elmo = load_elmo(self._options if self._ray is None else replace(self._options, device="cpu"))
        self._look_at_script()
        if self._ray is None:
            self._options = replace(self._options, device=str(next(elmo.bilm.parameters()).device))
        # Wrong options are an error before the folder is made.
        elmo.embed([], **self._options.arguments())
        if self._ray is None:
            from elmo_tasks.bilm.lstm.precision import computing_dtype

            computing_dtype(elmo.bilm.precision, next(elmo.bilm.parameters()))
        job = {**fingerprint(self._options, summary, elmo.bilm), **self._folder.format.about}
        digest = digest_of_job(job)
        origins = [PartOrigin.of(part, digest) for part in summary.parts]
        work = PartWork(self._options, self._folder.path, self._folder.format.kind, digest, job[WEIGHTS])
        is_here = self._ray is None and self._workers is None
        embed = self._embedder(work, PartWorker(work, elmo=elmo) if is_here else None)
        del elmo
        n_tokens, seconds = 0, 0.0
        try:
            was_finished = self._folder.open(job)
            if not was_finished:
                with self._kept():
                    n_tokens, seconds = self._embed(embed, summary, origins, show_progress)
                    if _signature(self._text) != signature:
                        raise ValueError(
                            f"{self._text} must not change during the job, but did: start again with --force"
                        )
                    self._finish(origins, job)
            elif self._folder.format.write is None:
                self._check_parts(origins)
        finally:
            self._folder.close()
        return EmbedReport(summary.n_lines, n_tokens, seconds, _size(self._folder.output), was_finished)

    def _look_at_script(self) -> None:
        from elmo_tasks.vectors.seen_scripts import unseen_script_notice

        sample = "".join(line for _, line in islice(numbered_lines(self._text), _LINES_LOOKED_AT))
        if notice := unseen_script_notice(sample, self._options.bilm, self._text):
            logger.warning(notice)

    def _embedder(
        self, work: PartWork, worker: PartWorker | None
    ) -> Callable[[Iterable[LinePart]], Iterator[PartDone]]:
        if self._ray is not None:
            return partial(embed_on_ray, self._ray, self._workers, work)
        if self._workers is not None:
            return partial(embed_in_processes, self._workers, work)
        return partial(embed_in_this_process, worker)  # type: ignore[arg-type]

    def _embed(
        self,
        embed: Callable[..., Iterator[PartDone]],
        summary: TextSummary,
        origins: list[PartOrigin],
        show_progress: bool | None,
    ) -> tuple[int, float]:
        before = self._done_before(origins, show_progress)
        n_words = sum(part.n_words for part in summary.parts)
        n_before = sum(summary.parts[number].n_words for number in before)
        if len(before) == len(origins):
            return 0, 0.0
        # A text that grows meanwhile has more parts; the check at the end says so.
        parts = islice(parts_of(self._text, self._options.part_lines), len(origins))
        n_tokens, start = 0, time.monotonic()
        cut_words: CutWords | None = None
        with progress_bar(n_words, show_progress, "tokens", n_before) as advance:
            for done in embed(part for part in parts if part.number not in before):
                n_tokens += done.n_tokens
                if cut_words is None:
                    cut_words = done.cut_words
                elif done.cut_words is not None:
                    cut_words.merge(done.cut_words)
                advance(summary.parts[done.number].n_words)
        if cut_words is not None and (message := cut_words.message()):
            logger.warning("%s: %s", self._text, message)
        return n_tokens, time.monotonic() - start

    def _done_before(self, origins: list[PartOrigin], show_progress: bool | None) -> set[int]:
        """The parts of an earlier run that are whole and of this job; others are computed again."""
        folder = self._folder
        found = folder.done()
        self._check_numbers(folder.path, found, len(origins))
        whole = set()
        with progress_bar(len(found), show_progress if found else False, "parts checked") as advance:
            for number in sorted(found):
                try:
                    read_part(part_path(folder.path, number, folder.format.kind), origins[number])
                    whole.add(number)
                except ValueError as error:
                    logger.warning("%s: it is computed again", error)
                advance(1)
        return whole

    def _check_numbers(self, folder: Path, found: set[int], n_parts: int) -> None:
        if found and max(found) >= n_parts:
            path = part_path(folder, max(found), self._folder.format.kind)
            raise ValueError(
                f"{path} must not be there, since the text has {n_parts} parts and their numbers begin with 0: move it "
                "to another folder"
            )

    def _check_parts(self, origins: list[PartOrigin]) -> None:
        """Reads a finished folder of Parquet files."""
        output, kind = self._folder.output, self._folder.format.kind
        self._check_numbers(output, numbers_of_parts(output, kind), len(origins))
        for number, origin in enumerate(origins):
            path = part_path(output, number, kind)
            try:
                read_part(path, origin)
            except FileNotFoundError:
                raise FileNotFoundError(
                    f"{path} must be there, but is missing from the finished output: restore it, or start again with "
                    "--force"
                ) from None
            except ValueError as error:
                raise ValueError(f"{error}: restore it, or start again with --force") from error

    def _finish(self, origins: list[PartOrigin], job: dict[str, Any]) -> None:
        folder = self._folder
        missing = set(range(len(origins))) - folder.done()
        if missing:
            raise FileNotFoundError(
                f"{folder.path} must have {len(origins)} parts, but part {min(missing)} is not there: the folder must "
                "be one that all machines see"
            )
        if folder.format.write is None:
            folder.publish()
            return
        self._check_space()
        n_lines = sum(origin.n_lines for origin in origins)
        with atomic_file(folder.output, folder=folder.path) as temporary:
            folder.format.write(temporary, self._parts(origins), n_lines, job)
            # That of an older output must not stand next to the new one, wherever the job is killed.
            checksum_path(folder.output).unlink(missing_ok=True)
        folder.write_checksum()
        folder.remove()

    def _parts(self, origins: list[PartOrigin]) -> Iterator[EmbeddedPart]:
        for number, origin in enumerate(origins):
            try:
                yield read_part(part_path(self._folder.path, number, self._folder.format.kind), origin)
            except ValueError as error:
                raise ValueError(f"{error}: resume with --resume, which computes it again") from error

    def _check_space(self) -> None:
        """Finds a full disk before the file is written, which may take long, and which HDF5 reports badly."""
        needed = _size(self._folder.path)
        free = shutil.disk_usage(self._folder.path).free
        if free < needed:
            raise OSError(
                f"{self._folder.output} needs about {needed:,} bytes in addition to its parts, which are removed "
                f"afterwards, but the disk has {free:,}"
            )

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Adds to an error that what is done is kept, and how to resume."""
        try:
            yield
        except OSError as error:
            raise OSError(
                f"{error}. What is done is kept in {self._folder.path}: make room, or supply what is missing, and "
                "resume with --resume"
            ) from error
        except RuntimeError as error:
            raise RuntimeError(f"{error}. What is done is kept in {self._folder.path}: resume with --resume") from error
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"interrupted; what is done is kept in {self._folder.path}: resume with the same command and --resume"
            ) from None


def _signature(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def _size(path: Path) -> int:
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)
