"""How a training ended."""

from dataclasses import dataclass

from elmo_tasks.replication.plan.run import Run

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """
    # Parameters

    run : `Run`
        The run.
    error : `str`, optional
        Why it is not finished; `None` if it is.
    """

    run: Run
    error: str | None = None
