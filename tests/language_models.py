"""Language models small enough to train in a test, from the published config with overrides."""

import json
from pathlib import Path
from typing import Any

from allennlp.commands.train import train_model
from allennlp.common import Params

from tests.paths import TRAINING_CONFIGS

CONFIG = TRAINING_CONFIGS / "bilm.jsonnet"

TINY: dict[str, Any] = {
    "model.options.lstm.dim": 16,
    "model.options.lstm.projection_dim": 8,
    "model.options.char_cnn.filters": [[1, 4], [2, 4]],
    "model.options.char_cnn.embedding.dim": 4,
    "data_loader.max_tokens_per_batch": 800,
    "trainer.num_epochs": 1,
    # The warm-up would be longer than this short training.
    "trainer.learning_rate_scheduler": None,
}


def train_tiny(
    folder: Path, overrides: dict[str, Any] | None = None, *, recover: bool = False
) -> dict[str, Any]:
    """Trains on the data that `ELMO_TASKS_DATA` names, and returns the metrics."""
    params = Params.from_file(CONFIG, json.dumps({**TINY, **(overrides or {})}))
    train_model(params, str(folder), recover=recover, return_model=False)
    return metrics_of(folder)


def metrics_of(folder: Path) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return metrics
