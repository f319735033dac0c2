"""The scores of several runs, next to each other."""

from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_tasks.analysis.run_scores import run_scores

__all__ = ["compare"]


def compare(runs: list[Path], metric: str) -> str:
    """
    # Parameters

    runs
        Serialization directories with a `metrics.json`. The others are compared with the first.
    metric
        The metric's name, without `best_validation_` or `test_`; a number from 0 to 1.

    # Returns

    `str`
        A table. The cells of a run that was not evaluated on test data are empty.

    # Raises

    `ConfigurationError`
        If a run is not finished, or does not have the metric, or it is outside of 0 to 1.
    """
    scores = [run_scores(run, metric) for run in runs]
    for run, both in zip(runs, scores, strict=True):
        if outside := [score for score in both if score is not None and not 0 <= score <= 1]:
            raise ConfigurationError(
                f"{metric} must be from 0 to 1, of which percent can be made, but that of {run} is {outside[0]}"
            )
    width = max(len(metric), *(len(str(run)) for run in runs))
    lines = [f"{metric:{width}}  {'dev':>6}  {'test':>6}  {'test difference':>15}"]
    for run, (dev, test) in zip(runs, scores, strict=True):
        first = scores[0][1]
        difference = None if run is runs[0] or test is None or first is None else test - first
        lines.append(f"{run!s:{width}}  {_percent(dev):>6}  {_percent(test):>6}  {_percent(difference, '+'):>15}")
    return "\n".join(line.rstrip() for line in lines)


def _percent(score: float | None, sign: str = "") -> str:
    # Not -0.00 of what is rounded to zero.
    return "" if score is None else f"{round(100 * score, 2) + 0.0:{sign}.2f}"
