"""The scores of one run."""

from math import isfinite
from pathlib import Path

from allennlp.common.checks import ConfigurationError

from elmo_tasks.files.sealed_json import read_json

__all__ = ["run_scores"]


def run_scores(run: Path, metric: str) -> tuple[float, float | None]:
    """
    # Parameters

    run
        The serialization directory of a finished run.
    metric
        The metric's name, without `best_validation_` or `test_`.

    # Returns

    `Tuple[float, Optional[float]]`
        The best validation score and the test score, as the metric counts; the second is `None` for a run that was not
        evaluated on test data.

    # Raises

    `ConfigurationError`
        If the run is not finished, or its metrics cannot be read or are without this one.
    """
    file = run / "metrics.json"
    if not file.is_file():
        raise ConfigurationError(
            f"{run} must be the serialization directory of a finished run, but has no metrics.json: "
            "finish it with `allennlp train ... --recover`"
        )
    try:
        metrics = read_json(file)
        if not isinstance(metrics, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise ConfigurationError(
            f"{file} must be a JSON object, as `allennlp train` writes it, but: {error}"
        ) from error
    dev = metrics.get(f"best_validation_{metric}")
    if dev is None:
        known = sorted(key.removeprefix("best_validation_") for key in metrics if key.startswith("best_validation_"))
        raise ConfigurationError(f"{file} must have the metric '{metric}', but has {', '.join(known)}")
    scores = dev, metrics.get(f"test_{metric}")
    wrong = [
        score for score in scores if score is not None and (type(score) not in (int, float) or not isfinite(score))
    ]
    if wrong:
        raise ConfigurationError(f"{file} must have a number as '{metric}', but has {wrong[0]!r:.100}")
    return scores
