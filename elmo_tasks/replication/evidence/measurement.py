"""Tables 5 and 7 of a plan, which are of the biLM alone, as files: `results/runs/bilm/table5.json`."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from elmo_tasks.files.sealed_json import read_sealed, write_sealed
from elmo_tasks.replication.make import train_runs, word_senses
from elmo_tasks.replication.plan.data_digests import RECORD, digest
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.fine_tuning import check_softmax, fine_tunings
from elmo_tasks.replication.plan.task_text import TASK_TEXTS
from elmo_tasks.replication.plan.variant import Variant
from elmo_tasks.replication.report.result_file import TABLES_WITHOUT_RUNS
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.report.table_7 import fine_tuning_results
from elmo_tasks.replication.train.record import differences, status
from elmo_tasks.vectors.pretrained import weight_file_in

__all__ = ["DATA_OF", "MEASUREMENTS", "Measurement", "measurement_files", "place_of_measurement"]

MEASUREMENTS = "bilm"
"""Their folder, in that of the files of runs."""

DATA_OF = {Exhibit.TABLE_5: ("wsd",), Exhibit.TABLE_7: tuple(dict.fromkeys(text.task for text in TASK_TEXTS.values()))}
"""The folders of the data that each needs."""


def place_of_measurement(folder: Path, exhibit: Exhibit) -> Path:
    """Where the file of a measurement is, in the folder of the files of runs."""
    return folder / MEASUREMENTS / f"{exhibit.replace(' ', '')}.json"


def measurement_files(folder: Path) -> list[Path]:
    """Those that are there, in the folder of the files of runs."""
    return [path for exhibit in DATA_OF if (path := place_of_measurement(folder, exhibit)).is_file()]


@dataclass(frozen=True)
class Measurement:
    """
    # Parameters

    exhibit
        Table 5 or 7.
    path
        The file.
    experiment
        Data and biLM.
    missing
        Why the data is not there; `None` if it is. Without data the file is compared with the name of the biLM alone.
    """

    exhibit: Exhibit
    path: Path
    experiment: Experiment
    missing: str | None = None

    @property
    def name(self) -> str:
        """As those of runs: `bilm/table5`."""
        return f"{MEASUREMENTS}/{self.path.stem}"

    def state(self) -> str:
        """`"finished"`, `"refused"` or `"to run"`."""
        if not self.path.exists():
            return "to run"
        return "finished" if self.problem() is None else "refused"

    def problem(self) -> str | None:
        """Why its file is refused: it is damaged, or of another biLM or other data."""
        if not self.path.exists():
            return None
        try:
            content = read_sealed(self.path)
            TABLES_WITHOUT_RUNS[self.exhibit](self.path)
            recorded = {"bilm": content.get("bilm"), "digests": content.get("digests")}
            asked = {
                "bilm": self._bilm.resolve().name,
                "digests": self._digests if self.missing is None else recorded["digests"],
            }
        except (ValueError, OSError) as error:
            return str(error)
        if different := differences(recorded, asked):
            return (
                f"{self.path} must be of the plan's biLM and data, but is another: {'; '.join(different[:5])}; move it "
                "away, and it is measured"
            )
        return None

    def table(self) -> Table:
        """
        # Raises

        `ValueError`, `OSError`
            If there is no such file.
        """
        return TABLES_WITHOUT_RUNS[self.exhibit](self.path)

    def measure(self, *, jobs: int | None = None, ray: str | None = None) -> None:
        """
        Measures it, and writes its file. What is done is kept in the folder of all trainings.

        # Parameters

        jobs, ray
            See `train_runs`.

        # Raises

        `ChildProcessError`, `BlockingIOError`
            If a part of it fails, or another process does it.
        `ValueError`, `OSError`
            If data or folders are damaged.
        """
        # Before: data that is replaced meanwhile is not what is measured.
        digests = self._digests
        content = self._word_senses() if self.exhibit is Exhibit.TABLE_5 else self._fine_tuning(jobs, ray)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(self.path, {**content, "digests": digests})

    def _word_senses(self) -> dict[str, Any]:
        run = word_senses(self.experiment, None)
        if not run.is_finished():
            run.measure()
        return {key: value for key, value in read_sealed(run.scores).items() if key != "identity"}

    def _fine_tuning(self, jobs: int | None, ray: str | None) -> dict[str, Any]:
        runs = fine_tunings(self.experiment, list(TASK_TEXTS.values()))
        missing = [run for run in runs if status(run) != "finished"]
        failed = [outcome for outcome in train_runs(self.experiment, missing, jobs=jobs, ray=ray) if outcome.error]
        if failed:
            raise ChildProcessError("; ".join(f"{outcome.run.name}: {outcome.error}" for outcome in failed))
        return fine_tuning_results(runs)

    @property
    def _bilm(self) -> Path:
        return Path(self.experiment.variables["ELMO_TASKS_BILM"])

    @cached_property
    def _digests(self) -> dict[str, Any]:
        if self.exhibit is Exhibit.TABLE_5:
            return dict(word_senses(self.experiment, None).identity())
        check_softmax(str(self._bilm))
        record = self.experiment.results / RECORD
        files = [self._bilm / "options.json", weight_file_in(self._bilm), self._bilm / "vocab.txt"]
        found = {f"biLM/{file.name}": digest(file, record) for file in files}
        for task in DATA_OF[self.exhibit]:
            inputs = self.experiment.run(task, Variant.baseline(), 1).identity["inputs"]
            found |= {name: value for name, value in inputs.items() if name.startswith(f"data/{task}/")}
        return found
