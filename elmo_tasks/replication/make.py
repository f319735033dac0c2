"""From a request to a table or figure: the experiment, the runs that are missing, and what is made of them."""

import os
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from elmo_tasks.environment import config_variables
from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.plan.experiment import Experiment
from elmo_tasks.replication.plan.run import Run
from elmo_tasks.replication.report.figure_plots import draw_curves, draw_mixes
from elmo_tasks.replication.report.figure_values import by_epochs, by_sizes, mixes
from elmo_tasks.replication.report.finished_run import FinishedRun
from elmo_tasks.replication.report.layout import layout
from elmo_tasks.replication.report.results import Results
from elmo_tasks.replication.report.table import Table
from elmo_tasks.replication.train.outcome import Outcome
from elmo_tasks.replication.train.record import clear, locked
from elmo_tasks.replication.train.runner import run_here, run_on_ray
from elmo_tasks.replication.train.wsd_run import WordSenseRun
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["draw", "experiment_of", "table_of", "train_runs", "word_senses"]

_DATA, _BILM, _GLOVE = "ELMO_TASKS_DATA", "ELMO_TASKS_BILM", "ELMO_TASKS_GLOVE"


def experiment_of(
    *,
    data: str | None,
    bilm: str | None,
    results: Path,
    overrides: Mapping[str, Mapping[str, Any]],
    arguments: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
    glove: str | None = None,
    without_data: Collection[str] = (),
) -> Experiment:
    """
    # Parameters

    data, bilm
        The folder of the data; the name of a biLM, its folder, or the URL of that. `None`: as the environment says.
    results, overrides, arguments, names, without_data
        See `Experiment`.
    glove
        The file of word vectors; `None`: as the environment says.

    # Raises

    `FileNotFoundError`, `ValueError`, `ConnectionError`
        If data or biLM is not there, and see `Experiment`.
    """
    given = {_DATA: data, _BILM: bilm, _GLOVE: glove}
    variables = config_variables({**os.environ, **{name: value for name, value in given.items() if value}})
    # Evaluated configs name their files, and are read in other processes: nothing may depend on the folder we are in.
    folder, bilm = os.path.abspath(variables[_DATA]), variables[_BILM]
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{_DATA} (--data) must be a folder, but {variables[_DATA]!r} is not one")
    if "://" not in bilm:
        bilm = os.path.abspath(pretrained_files(bilm)[0].parent)
    return Experiment(
        {**variables, _DATA: folder, _BILM: bilm},
        results.absolute(),
        overrides=overrides,
        arguments=arguments,
        names=names,
        without_data=frozenset(without_data),
    )


def train_runs(
    experiment: Experiment, runs: Sequence[Run], *, jobs: int | None = None, ray: str | None = None
) -> Generator[Outcome, None, None]:
    """
    # Parameters

    runs
        Those of a plan that are not finished.
    jobs
        How many at once; `None` is one here, and on Ray as many as it has room for.
    ray
        The address of a cluster; `None` trains on this machine.

    # Returns

    `Generator[Outcome]`
        One for each run, as they end. When the caller stops asking, or is interrupted, the trainings are ended. A run
        whose data or biLM was changed meanwhile is removed.
    """
    ready = []
    for run in runs:
        try:
            if run.size is not None:
                experiment.write_subset(run.task, run.size)
        except (ValueError, OSError) as error:
            yield Outcome(run, str(error))
        else:
            ready.append(run)
    jobs_here = 1 if jobs is None else jobs
    training = run_here(ready, jobs=jobs_here) if ray is None else run_on_ray(ready, address=ray, jobs=jobs)
    with closing(training) as outcomes:
        for outcome in outcomes:
            yield _of_same_data(experiment, outcome)


def _of_same_data(experiment: Experiment, outcome: Outcome) -> Outcome:
    """An outcome; of a run whose inputs were changed since it was made, that it does not count: it is removed."""
    run = outcome.run
    if outcome.error is not None:
        return outcome
    try:
        if not (changed := experiment.changed_inputs(run)):
            return outcome
        with locked(run.folder):
            clear(run.folder)
    except BlockingIOError as error:
        return Outcome(run, str(error))
    except OSError as error:
        return Outcome(run, f"is finished, but what it was trained on cannot be compared: {error}")
    return Outcome(run, f"was trained while {changed[0]} was changed, and is removed: run the command again")


def table_of(exhibit: Exhibit, runs: Sequence[FinishedRun]) -> tuple[Table, str]:
    """
    # Parameters

    exhibit
        Table 1, 2, 3 or 6.
    runs
        Finished runs.

    # Returns

    `Tuple[Table, str]`
        The table, and the content of a result file.
    """
    results = Results.of_runs(exhibit, runs)
    table = layout(results)
    return table, results.to_json(asdict(table))


def draw(exhibit: Exhibit, runs: Sequence[FinishedRun], total: Callable[[str], int], results: Path) -> list[Path]:
    """
    # Parameters

    exhibit
        Figure 1 or 2.
    runs
        Finished runs.
    total
        For Figure 1, the size of the whole training set of a task.
    results
        The folder of all runs.

    # Returns

    `List[Path]`
        Pictures and values, in the folder `figures` of the results.
    """
    folder = results / "figures"
    if exhibit is Exhibit.FIGURE_2:
        return draw_mixes(mixes(runs), folder / "figure2")
    files = draw_curves(by_sizes(runs, total), "size", folder / "figure1_sizes")
    # Where only runs on parts of the training set are finished, there is nothing to draw by epochs.
    if epochs := by_epochs(runs):
        files += draw_curves(epochs, "epoch", folder / "figure1_epochs")
    return files


def word_senses(experiment: Experiment, wordnet: Path | None) -> WordSenseRun:
    """The measurement of Table 5."""
    data = Path(experiment.variables[_DATA], "wsd")
    return WordSenseRun(experiment.results, data, experiment.variables[_BILM], wordnet)
