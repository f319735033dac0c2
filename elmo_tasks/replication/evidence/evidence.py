"""The runs of a plan: which are finished, and what is to be trained."""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_tasks.replication.evidence.run_file import (
    RunFile,
    digests_of,
    failed_file,
    finished_file,
    place_of,
    run_files,
    with_sentences,
)
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.subset import SUBSET_TASKS
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.sentence_scores import text_of_sentences
from elmo_tasks.replication.train.by_sentence import scores_by_sentence
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.record import (
    clear,
    differences,
    is_locked,
    is_whole,
    locked,
    read_record,
    state_of,
    status,
)

__all__ = ["Evidence"]

logger = logging.getLogger(__name__)


@dataclass
class Evidence:
    """
    The files of finished and failed runs, compared with a plan.

    # Parameters

    folder
        The folder of all run files.
    runs
        Those of the plan.
    without_data
        Tasks whose data is not there: what the folders of their runs hold cannot be told.
    """

    folder: Path
    runs: Sequence[Run]
    without_data: Collection[str] = ()
    _files: dict[str, RunFile] = field(default_factory=dict, init=False)
    refused: dict[str, str] = field(default_factory=dict, init=False)
    """The runs whose files cannot be used, by their names; and files that are no runs of the plan, by theirs."""

    outdated: set[str] = field(default_factory=set, init=False)
    """The names of the runs that the code would now compute in another way."""

    def __post_init__(self) -> None:
        self.read()

    def read(self) -> None:
        """Reads the files, and the folders of runs that have none: other processes may have written some since."""
        self._files, self.refused, self.outdated = {}, {}, set()
        runs = {place_of(self.folder, run.task, run.variant, run.seed, run.size): run for run in self.runs}
        for path in run_files(self.folder):
            run = runs.get(path)
            try:
                file = RunFile.read(path)
                place = place_of(self.folder, *file.key)
                if path != place:
                    self._refuse_second(file, place, runs.get(place))
                elif run is None:
                    raise ValueError(
                        f"{path} is not a run of this plan: move it away, or name the folder of its runs with --runs"
                    )
                else:
                    self._take(file, run)
            except (ValueError, OSError) as error:
                self.refused[str(path) if run is None else run.name] = str(error)
        for run in self.runs:
            # One whose folder holds another run, or is damaged, is no reason to train none of the others.
            self.state(run)

    def _take(self, file: RunFile, run: Run) -> None:
        asked = digests_of(run)
        if file.digests.get("computation") != asked["computation"]:
            self.outdated.add(run.name)
            return
        # Where the data is not there, its digests are not asked for.
        recorded = {
            "config": file.digests.get("config"),
            "inputs": {name: file.digests.get("inputs", {}).get(name) for name in asked["inputs"]},
        }
        if different := differences(recorded, {key: asked[key] for key in recorded}):
            raise ValueError(
                f"{file.path} must be the run of the plan, but is another: {'; '.join(different[:5])}; move it away, "
                "and the run is trained"
            )
        here = _trained_here(run)
        if here is not None and file.run is not None and (here.dev, here.test) != (file.run.dev, file.run.test):
            raise ValueError(
                f"{file.path} has other scores (dev {file.run.dev:.2f}) than the same run in {run.folder} (dev "
                f"{here.dev:.2f}): find out which of the two is right, and move the other away"
            )
        self._files[run.name] = file

    def _refuse_second(self, file: RunFile, place: Path, run: Run | None) -> None:
        """A file that is not where the run in it belongs; if there is another one with other scores, neither counts."""
        problem = f"{file.path} must be named {place}, as the run in it"
        try:
            other = RunFile.read(place)
        except (ValueError, OSError):
            problem += ": rename it, or move it away"
        else:
            if _scores(other) == _scores(file):
                problem += ", which is there with the same scores: move one of them away"
            else:
                problem += ", which is there with other scores: find out which is right, and move the other away"
                if run is not None:
                    self.refused[run.name] = problem
        self.refused[str(file.path)] = problem

    def state(self, run: Run) -> str:
        """
        `"finished"`, `"failed"`, `"refused"`; `"outdated"`, which is trained again; `"trained"`, which has no file yet;
        or one of those of `status`. A run whose folder holds another, or is damaged, is refused from then on.
        """
        if run.name in self.refused:
            return "refused"
        if run.name in self._files:
            return self._files[run.name].status
        if run.task in self.without_data:
            return "outdated" if run.name in self.outdated else "to run"
        try:
            state = self._state_of_folder(run)
        except (ValueError, OSError) as error:
            self.refused[run.name] = str(error)
            return "refused"
        return "outdated" if state in ("to run", "interrupted") and run.name in self.outdated else state

    def _state_of_folder(self, run: Run) -> str:
        if is_locked(run.folder):
            # Also where it trains what earlier code computes: it still writes into the folder.
            return "in progress"
        if self._is_outdated(run):
            return "outdated"
        state = status(run)
        # Only a file counts, and it could not be written, as on a full disk, or was moved away.
        return "trained" if state == "finished" else state

    @staticmethod
    def _is_outdated(run: Run) -> bool:
        """Whether the folder of a run holds what earlier code has computed, and nothing else differs."""
        record = read_record(run.folder)
        if record is None:
            return False
        found = record["identity"]
        # That of a run without a plan does not say what the code computes.
        known = "computation" in found and {**found, "computation": run.identity["computation"]}
        return found != run.identity and known == run.identity

    def reason(self, run: Run) -> str | None:
        """Why a run is refused or failed."""
        if run.name in self.refused:
            return self.refused[run.name]
        file = self._files.get(run.name)
        return None if file is None else file.reason

    def finished(self, runs: Iterable[Run]) -> list[FinishedRun]:
        """The scores of those that are finished."""
        found = []
        for run in runs:
            file = None if run.name in self.refused else self._files.get(run.name)
            if file is not None and file.run is not None:
                found.append(replace(file.run, about=run.about))
        return found

    def total(self, task: str) -> int:
        """
        # Returns

        `int`
            The size of the whole training set, as the runs of a task say.

        # Raises

        `ValueError`
            If none says it.
        """
        for file in self._files.values():
            size = file.content.get("training_size")
            if file.content["task"] == task and size is not None:
                return int(size)
        raise ValueError(f"a run of {task} must say how large its training set is, but none does")

    def lacks_sentences(self, run: Run) -> bool:
        """
        Whether a run is finished, with a score of the set that Table 1 is about, its file does not say what it gets
        right in each sentence, and the model that has its scores is in its folder.
        """
        file = None if run.name in self.refused else self._files.get(run.name)
        if file is None or file.run is None or file.run.sentences is not None:
            return False
        if (file.run.dev if TASKS[run.task].split == "dev" else file.run.test) is None:
            return False
        return _trained_here(run) is not None and is_whole(run.serialization_dir)

    def note_sentences(self, run: Run) -> str | None:
        """
        Measures what the model of a finished run gets right in each sentence, and adds it to its file.

        # Returns

        `Optional[str]`
            The reason why that was not possible.
        """
        path = self._files[run.name].path
        try:
            scores = scores_by_sentence(run.task, run.serialization_dir / "model.tar.gz")
            with_sentences(path, text_of_sentences(scores))
            self._files[run.name] = RunFile.read(path)
        except (ConfigurationError, ValueError, OSError, RuntimeError) as error:
            return str(error)
        return None

    def prepare(self, run: Run) -> None:
        """
        Before it is trained: what earlier code has left of it is removed, and would not be resumed.

        # Raises

        `BlockingIOError`
            If it is being trained.
        `ValueError`, `OSError`
            If its folder is damaged, or nothing can be removed from it.
        """
        if not self._is_outdated(run):
            return
        with locked(run.folder):
            # Another process may have trained it since.
            if self._is_outdated(run):
                logger.warning("%s was computed by earlier code: it is removed, and trained again", run.folder)
                clear(run.folder)

    def note(self, outcome: Outcome, experiment: Experiment) -> Outcome:
        """
        Writes the file of a run that has ended, and takes it.

        # Returns

        `Outcome`
            The same, or the reason why there is no file of a finished run.
        """
        run = outcome.run
        path = place_of(self.folder, run.task, run.variant, run.seed, run.size)
        try:
            if outcome.error is None:
                outcome = self._note_finished(run, path, experiment)
            if outcome.failure is not None:
                failed_file(run, path, outcome.failure)
            elif outcome.error is not None:
                return outcome
            self._take(RunFile.read(path), run)
        except (ValueError, OSError) as error:
            return Outcome(run, f"{outcome.error or 'is finished'}, but cannot be noted: {error}")
        return outcome

    @staticmethod
    def _note_finished(run: Run, path: Path, experiment: Experiment) -> Outcome:
        size = (lambda: experiment.total(run.task)) if run.task in SUBSET_TASKS else None
        try:
            finished_file(run, path, size)
        except (ConfigurationError, ValueError) as error:
            return Outcome(run, str(error), str(error).replace(f"{run.folder}/", ""))
        return Outcome(run)


def _scores(file: RunFile) -> tuple[float | None, ...] | None:
    return None if file.run is None else (file.run.dev, file.run.test, *file.run.epochs)


def _trained_here(run: Run) -> FinishedRun | None:
    """The scores that a run has in its own folder, if it is finished there."""
    try:
        record = read_record(run.folder)
        if record is None or record["identity"] != run.identity or state_of(run) != "finished":
            return None
        return FinishedRun.of(run)
    except (ConfigurationError, ValueError, OSError):
        # The file is the evidence, and has its own checksum.
        return None
