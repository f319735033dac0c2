"""The end of a training."""

from dataclasses import dataclass

from elmo_tasks.replication.plan.run import Run

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """
    # Parameters

    run
        The run.
    error
        The reason why it is not finished; `None` if it is.
    failure
        The reason in short, without names of files, if the training itself has failed, and would fail again: not if it
        was interrupted, or could not begin.
    """

    run: Run
    error: str | None = None
    failure: str | None = None
