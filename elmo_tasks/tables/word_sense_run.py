"""The measurement that Table 5 is made of."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from elmo_tasks.tables.inputs import digest
from elmo_tasks.tables.record import differences
from elmo_tasks.tables.training import ALLENNLP

__all__ = ["WordSenseRun"]


@dataclass(frozen=True)
class WordSenseRun:
    """
    One `allennlp elmo-wsd`, which takes minutes: if it is broken off, it begins anew. It has no seed.

    # Parameters

    results : `Path`
        The folder of all runs; this one is in its folder `wsd`.
    data : `Path`
        The folder with `train/` and `test/`.
    bilm : `str`
        The folder of the biLM.
    wordnet : `Path`, optional (default = `None`)
        The folder of WordNet, for first senses.
    """

    results: Path
    data: Path
    bilm: str
    wordnet: Path | None = None

    @property
    def scores(self) -> Path:
        """The file that it writes."""
        return self.results / "wsd" / "scores.json"

    def is_finished(self) -> bool:
        """
        # Raises

        `ValueError`
            If another measurement is there: of other data, another biLM, or another WordNet.
        `FileNotFoundError`
            If one of them is not there.
        """
        if not self.scores.is_file():
            return False
        different = differences(json.loads(self._record.read_text(encoding="utf-8")), self._identity())
        if different:
            raise ValueError(
                f"{self.scores.parent} must hold what is asked for, but holds another: {'; '.join(different)}; "
                "name another folder with --results, or move this one away"
            )
        return True

    def measure(self, command: Sequence[str] = ALLENNLP) -> None:
        """
        # Parameters

        command : `Sequence[str]`, optional (default = `ALLENNLP`)
            How `allennlp` is called.

        # Raises

        `ChildProcessError`
            If it fails; it has said why.
        `FileNotFoundError`
            If data, biLM or WordNet is not there.
        """
        identity = self._identity()
        self.scores.parent.mkdir(parents=True, exist_ok=True)
        part = self.scores.with_name(f"scores-{os.getpid()}.part")
        call = [*command, "elmo-wsd", "--data", str(self.data), "--bilm", self.bilm, "--output-file", str(part)]
        if self.wordnet is not None:
            call += ["--wordnet", str(self.wordnet)]
        # Its bar and its errors are for whoever waits; its table is printed from the file.
        code = subprocess.run(call, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
        if code != 0:
            part.unlink(missing_ok=True)
            raise ChildProcessError(f"elmo-wsd ended with status {code}, and has said why")
        # The record first: scores are never without it.
        self._record.write_text(json.dumps(identity, indent=1), encoding="utf-8")
        os.replace(part, self.scores)

    @property
    def _record(self) -> Path:
        return self.scores.with_name("record.json")

    def _identity(self) -> dict[str, str | None]:
        if self.wordnet is not None and not self.wordnet.is_dir():
            raise FileNotFoundError(f"--wordnet must be a folder with index.sense, but '{self.wordnet}' is none")
        bilm = self.bilm if "://" in self.bilm else digest(Path(self.bilm))
        wordnet = None if self.wordnet is None else digest(self.wordnet)
        return {"data": digest(self.data), "bilm": bilm, "wordnet": wordnet}
