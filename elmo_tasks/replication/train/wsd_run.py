"""The measurement of Table 5."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from elmo_tasks.analysis import wordnet_index
from elmo_tasks.files.atomic_files import atomic_file
from elmo_tasks.files.sealed_json import read_json, read_sealed, sealed_text
from elmo_tasks.replication.plan.data_digests import RECORD, digest
from elmo_tasks.replication.train.record import differences
from elmo_tasks.replication.train.surroundings import commit, machine
from elmo_tasks.replication.train.training import ALLENNLP
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["WordSenseRun"]


@dataclass(frozen=True)
class WordSenseRun:
    """
    One `allennlp elmo-wsd`, which takes minutes: if it is interrupted, it starts over. It has no seed.

    # Parameters

    results
        The folder of all runs; this one is in its folder `wsd`.
    data
        The folder with `train/` and `test/`.
    bilm
        The folder of the biLM.
    wordnet
        The folder of WordNet, for first senses.
    """

    results: Path
    data: Path
    bilm: str
    wordnet: Path | None = None

    @property
    def scores(self) -> Path:
        """The file that it writes: that of `elmo-wsd`, with digests of what was measured."""
        return self.results / "wsd" / "scores.json"

    def is_finished(self) -> bool:
        """
        # Raises

        `ValueError`
            If another measurement is there: of other data, another biLM, or another WordNet; or if the biLM is a URL.
        `FileNotFoundError`
            If data, biLM or WordNet is not there.
        """
        identity = self.identity()
        if not self.scores.is_file():
            return False
        try:
            found = read_sealed(self.scores)["identity"]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"{self.scores} must be of this command, but is not ({error!r}): move it away, or name another folder "
                "with --results"
            ) from None
        if different := differences(found, identity):
            raise ValueError(
                f"{self.scores.parent} must hold what is asked for, but holds another: {'; '.join(different)}; "
                "name another folder with --results, or move this one away"
            )
        return True

    def measure(self, command: Sequence[str] = ALLENNLP) -> None:
        """
        # Parameters

        command
            How `allennlp` is called.

        # Raises

        `BlockingIOError`
            If another process measures it.
        `ChildProcessError`
            If `elmo-wsd` fails.
        `ValueError`, `FileNotFoundError`
            See `is_finished`.
        """
        # Before the measurement: data that is replaced while it runs is not what was measured.
        identity = self.identity()
        folder = self.scores.parent
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(folder / "lock", timeout=0):
                # Another process may have ended since.
                if not self.is_finished():
                    self._measure(command, identity)
        except Timeout:
            raise BlockingIOError(
                f"{folder} is being measured by another process: wait for it, and run the command again"
            ) from None

    def _measure(self, command: Sequence[str], identity: dict[str, str | None]) -> None:
        with atomic_file(self.scores, exclusive=True) as part:
            call = [*command, "elmo-wsd", "--data", str(self.data), "--bilm", self.bilm, "--output-file", str(part)]
            if self.wordnet is not None:
                call += ["--wordnet", str(self.wordnet)]
            # Its bar and its errors are shown; its table and its warnings are in the file. In a process group of its
            # own it is ended by us and not by the terminal, whose Ctrl-C would give a message of its own.
            ended = subprocess.run(call, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, process_group=0)
            if ended.returncode != 0:
                code = ended.returncode
                raise ChildProcessError(
                    f"elmo-wsd was killed by signal {-code}"
                    if code < 0
                    else f"elmo-wsd ended with status {code}: see above"
                )
            numbers = read_json(part)
            made = [f"Table 5: commit {commit() or 'unknown'}, on {machine()}."]
            part.write_text(sealed_text({**numbers, "made": made, "identity": identity}), encoding="utf-8")

    def identity(self) -> dict[str, str | None]:
        """
        The digests of what is measured.

        # Raises

        `ValueError`, `FileNotFoundError`
            See `is_finished`.
        """
        if not self.data.is_dir():
            raise FileNotFoundError(
                f"Table 5 needs the folder '{self.data}' with train/ and test/, but it is not there: name the "
                "folder that has wsd/ with --data"
            )
        if "://" in self.bilm:
            raise ValueError(f"Table 5 needs the folder of a biLM, but --bilm is the URL {self.bilm}: download it")
        record = self.results / RECORD
        options, weights = pretrained_files(self.bilm)
        return {
            "data": digest(self.data, record),
            "options": digest(options, record),
            "weights": digest(weights, record),
            "wordnet": None if self.wordnet is None else digest(wordnet_index(self.wordnet), record),
        }
