"""The end of a training."""

from dataclasses import dataclass

from elmo_tasks.replication.plan.run import Run

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """A run, and the reason why it is not finished; `None` if it is."""

    run: Run
    error: str | None = None
