"""All tables and figures of a plan: what is finished, what is trained, and what is made of it."""

import os
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from elmo_tasks.environment import glove_remedy
from elmo_tasks.replication.evidence.evidence import Evidence
from elmo_tasks.replication.evidence.measurement import DATA_OF, Measurement, place_of_measurement
from elmo_tasks.replication.make import draw, experiment_of, table_of, train_runs
from elmo_tasks.replication.plan.computation import COMPUTATION, computation_digest
from elmo_tasks.replication.plan.exhibit import FIGURES, Exhibit
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.plan_file import PlanFile, PlannedRun
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.plan.task import TASKS
from elmo_tasks.replication.report.figure_values import by_epochs, by_sizes, mixes
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.plan_results import PlanResults
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.train.by_sentence import TASKS_BY_SENTENCE
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.record import state_of
from elmo_tasks.shipped import FIXTURES

__all__ = ["Replication", "replication_of"]


@dataclass
class Replication:
    """
    A plan with its data, and how far it is.

    # Parameters

    plan
        The plan.
    experiment
        What its runs share.
    runs
        All of them.
    evidence
        Their files.
    missing_data
        By task, why its data cannot be compared, nor trained on.
    measurements
        Tables 5 and 7, if the plan has them.
    """

    plan: PlanFile
    experiment: Experiment
    runs: dict[PlannedRun, Run]
    evidence: Evidence
    missing_data: dict[str, str]
    measurements: dict[Exhibit, Measurement] = field(default_factory=dict)

    def runs_of(self, exhibits: Collection[Exhibit], tasks: Collection[str] | None = None) -> list[Run]:
        """Those of some tables and figures, in the order in which they are trained."""
        wanted = self.plan.runs(exhibits, self.plan.task_names if tasks is None else tasks)
        return [self.runs[planned] for planned in wanted]

    def to_train(self, runs: Sequence[Run], *, retry_failed: bool) -> list[Run]:
        """Those that have data and no file, or that of earlier code; and if asked for, those that have failed."""
        done = {"finished", "refused", *(() if retry_failed else ("failed",))}
        return [run for run in runs if run.task not in self.missing_data and self.evidence.state(run) not in done]

    def train(self, runs: Sequence[Run], *, jobs: int | None, ray: str | None) -> Generator[Outcome, None, None]:
        """
        Trains runs, and writes the file of each as soon as it has ended.

        # Returns

        `Generator[Outcome]`
            See `train_runs`.

        # Raises

        `ValueError`
            If the code has been changed meanwhile so that it computes something else.
        """
        waiting = []
        for run in runs:
            try:
                self.evidence.prepare(run)
                # The command that began it was ended before the training was.
                if state_of(run) == "finished":
                    yield self.evidence.note(Outcome(run), self.experiment)
                    continue
            except (ValueError, OSError) as error:
                yield Outcome(run, str(error))
                continue
            waiting.append(run)
        with closing(train_runs(self.experiment, waiting, jobs=jobs, ray=ray)) as outcomes:
            for outcome in outcomes:
                self._check_computation(outcome.run)
                yield self.evidence.note(outcome, self.experiment)

    def measure_sentences(self, runs: Sequence[Run]) -> Generator[Outcome, None, None]:
        """
        For runs of Table 1 with the first seed whose model is on this machine: what it gets right in each sentence, for
        a test of two models over sentences. It takes minutes for each.

        # Returns

        `Generator[Outcome]`
            One for each run that is measured.
        """
        of_table = {run.name for run in self.runs_of([Exhibit.TABLE_1])}
        tasks = {task for task in TASKS_BY_SENTENCE if task not in self.missing_data}
        wanted = [run for run in runs if run.name in of_table and run.seed == 1 and run.task in tasks]
        for run in wanted:
            if self.evidence.lacks_sentences(run):
                yield Outcome(run, self.evidence.note_sentences(run))

    def _check_computation(self, run: Run) -> None:
        (planned,) = (planned for planned, other in self.runs.items() if other.name == run.name)
        if computation_digest(run.task, planned.variant) != run.identity["computation"]:
            raise ValueError(
                f"{run.name} was trained while {COMPUTATION} was changed, and does not count: run the command again"
            )

    def table(self, exhibit: Exhibit, tasks: Collection[str] | None = None) -> tuple[Table, str] | None:
        """Of the runs that are finished, see `table_of`, or of the measurement; `None` if there is nothing."""
        if (measurement := self.measurements.get(exhibit)) is not None:
            is_finished = measurement.state() == "finished"
            return (measurement.table(), measurement.path.read_text("utf-8")) if is_finished else None
        finished = self.evidence.finished(self.runs_of([exhibit], tasks))
        return table_of(exhibit, finished) if finished else None

    def results(self) -> PlanResults:
        """The scores of the runs that are finished, of each table and figure, of tasks that compare two models."""
        tables = {}
        for exhibit in (exhibit for exhibit in self.plan.exhibits if exhibit not in FIGURES):
            if finished := _compared(self.evidence.finished(self.runs_of([exhibit]))):
                tables[exhibit] = Results.of_runs(exhibit, finished)
        curves = self._curves()
        return PlanResults(
            tables,
            sizes=by_sizes(curves, self.evidence.total),
            epochs=by_epochs(curves),
            training_sizes={run.task: self.evidence.total(run.task) for run in curves},
            mixes=mixes(self.evidence.finished(self.runs_of([Exhibit.FIGURE_2]))),
        )

    def _curves(self) -> list[FinishedRun]:
        """Of Figure 1, with all seeds that Table 1 has; none without a run on a part of a training set."""
        tasks = {run.task for run in self.runs_of([Exhibit.FIGURE_1]) if run.size is not None}
        finished = self.evidence.finished(self.runs_of([Exhibit.FIGURE_1, Exhibit.TABLE_1], tasks))
        on_parts = {run.task for run in finished if run.size is not None}
        return [run for run in finished if run.task in on_parts]

    def draw(self, exhibit: Exhibit, tasks: Collection[str] | None = None) -> list[Path]:
        """Of the runs that are finished, see `draw`; nothing if there are none."""
        finished = self.evidence.finished(self.runs_of([exhibit], tasks))
        return draw(exhibit, finished, self.evidence.total, self.experiment.results) if finished else []


def replication_of(
    plan: str, *, data: str | None, results: Path | None, runs: Path, with_data: bool = True
) -> Replication:
    """
    # Parameters

    plan
        The name of a plan, or its file.
    data
        The folder of the data; `None`: as the environment says. Unlike elsewhere, there is no default: a plan says what
        its data is, and runs on other data are other runs.
    results
        The folder in which runs are trained; `None`: one for the plan, below `output`.
    runs
        The folder of the files of finished runs.
    with_data
        Whether digests of the data are compared.

    # Raises

    `FileNotFoundError`, `ValueError`, `ConfigurationError`
        If there is no such plan, data or biLM; and see `PlanFile`, `Experiment`.
    """
    file = PlanFile.from_file(plan)
    given = data or os.environ.get("ELMO_TASKS_DATA")
    root = os.path.expanduser(given) if with_data and given else None
    missing = {task.task: problem for task in file.tasks if (problem := _missing(root, task.task, file.glove))}
    experiment = experiment_of(
        data=root or str(FIXTURES),
        bilm=file.bilm,
        results=results or Path("output", file.name),
        glove=file.glove,
        without_data=missing,
        **file.settings(),
    )
    planned = file.runs(file.exhibits, file.task_names)
    variants = [(run.task, run.variant) for run in planned]
    experiment.evaluate(variants)
    if incomplete := experiment.missing_inputs(variants):
        missing |= incomplete
        experiment = replace(experiment, without_data=frozenset(missing))
        experiment.evaluate(variants)
    _check_sizes(file, experiment, missing)
    all_runs = {run: _with_computation(experiment.run(*run), run) for run in planned}
    evidence = Evidence(runs, list(all_runs.values()), missing)
    measurements = {
        exhibit: Measurement(
            exhibit, place_of_measurement(runs, exhibit), experiment, _missing_of(exhibit, root, file.glove, missing)
        )
        for exhibit in file.measurements
    }
    return Replication(file, experiment, all_runs, evidence, missing, measurements)


def _compared(runs: Sequence[FinishedRun]) -> list[FinishedRun]:
    """Those of tasks with more than one column: a score alone says nothing about ELMo."""
    columns = {(run.task, run.variant) for run in runs}
    return [run for run in runs if sum(task == run.task for task, _ in columns) > 1]


def _check_sizes(plan: PlanFile, experiment: Experiment, missing_data: Collection[str]) -> None:
    """The whole training set is trained on too: a part as large would be a second run of the same."""
    for task in plan.tasks:
        if not task.sizes or task.task in missing_data:
            continue
        try:
            total = experiment.total(task.task)
        except ValueError:
            # It is damaged, which is said where it is read for a run.
            continue
        if (largest := max(task.sizes)) >= total:
            raise ValueError(
                f"{plan.path} must be a plan, but: 'sizes' of {task.task} must be below {total}, the size of its "
                f"training set, but one is {largest}"
            )


def _missing_of(exhibit: Exhibit, root: str | None, glove: str, missing: Mapping[str, str]) -> str | None:
    """Why the data of a measurement is not there; of tasks, as for their runs."""
    folders = DATA_OF[exhibit]
    problems = (missing.get(folder) or _missing(root, folder, glove if folder in TASKS else None) for folder in folders)
    return next(filter(None, problems), None)


def _with_computation(run: Run, planned: PlannedRun) -> Run:
    run.identity["computation"] = computation_digest(run.task, planned.variant)
    return run


def _missing(root: str | None, task: str, glove: str | None) -> str | None:
    if root is None:
        return "the data of the plan must be there, but ELMO_TASKS_DATA is not set: name its folder"
    if not Path(root, task).is_dir():
        return f"{root} (ELMO_TASKS_DATA) must have the folder '{task}', but does not"
    folder = Path(root, "glove")
    if glove is not None and not (folder / glove).is_file():
        return f"{folder} must have the word vectors {glove} of the plan, but does not: {glove_remedy(folder)}"
    return None
