"""The scores of one run."""

import json
from pathlib import Path

from allennlp.common.checks import ConfigurationError

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
        metrics = dict(json.loads(file.read_text(encoding="utf-8")))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{file} must be a JSON object, as `allennlp train` writes it, but: {error}"
        ) from error
    dev = metrics.get(f"best_validation_{metric}")
    if dev is None:
        known = sorted(key.removeprefix("best_validation_") for key in metrics if key.startswith("best_validation_"))
        raise ConfigurationError(f"{file} must have the metric '{metric}', but has {', '.join(known)}")
    return dev, metrics.get(f"test_{metric}")
