"""The scores of a plan's finished runs, for pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from elmo_tasks.replication.plan.exhibit import Exhibit
from elmo_tasks.replication.report.figure_values import Row
from elmo_tasks.replication.report.results import Results

__all__ = ["PlanResults"]


@dataclass(frozen=True)
class PlanResults:
    """
    # Parameters

    tables
        The results of each table that some runs are finished of.
    sizes, epochs
        The values of Figure 1, if there are runs on parts of a training set: see
        `elmo_tasks.replication.report.figure_values.by_sizes` and `by_epochs`.
    training_sizes
        The size of the whole training set of each task in them.
    mixes
        The values of Figure 2: see `elmo_tasks.replication.report.figure_values.mixes`.
    """

    tables: Mapping[Exhibit, Results] = field(default_factory=dict)
    sizes: Sequence[Row] = ()
    epochs: Sequence[Row] = ()
    training_sizes: Mapping[str, int] = field(default_factory=dict)
    mixes: Sequence[Row] = ()
