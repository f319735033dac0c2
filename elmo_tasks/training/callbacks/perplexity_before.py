"""The perplexity before and after fine-tuning."""

import json
import os
from pathlib import Path
from typing import Any

from allennlp.common.checks import ConfigurationError
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.util import evaluate

from elmo_tasks.files.atomic_files import atomic_file

__all__ = ["PerplexityBeforeCallback"]

_FILE = "metrics_before.json"


@TrainerCallback.register("elmo_perplexity_before")
class PerplexityBeforeCallback(TrainerCallback):
    """
    Evaluates the model on the validation data before its first step, writes `metrics_before.json`, and at the end of
    the training prints the perplexities before and after, as Table 7 of the paper's appendix has them, with the share
    of the words that are not in the vocabulary, which count as one.

    Registered as a `TrainerCallback` with name "elmo_perplexity_before".

    # Raises

    `ConfigurationError`
        At the start, if there is no validation data.
    """

    def on_start(self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any) -> None:
        if trainer._validation_data_loader is None:
            raise ConfigurationError(
                "'elmo_perplexity_before' must have validation data, but has none: set validation_data_path, or "
                "drop the callback"
            )
        path = os.path.join(self.serialization_dir, _FILE)
        # A recovered run has changed the weights already.
        if os.path.exists(path):
            return
        metrics = evaluate(trainer.model, trainer._validation_data_loader, trainer.cuda_device)
        if is_primary:
            with atomic_file(Path(path)) as temporary:
                temporary.write_text(json.dumps(metrics, indent=2), encoding="utf-8")

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: dict[str, Any] | None = None,
        epoch: int | None = None,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if not is_primary or not metrics:
            return
        with open(os.path.join(self.serialization_dir, _FILE), encoding="utf-8") as file:
            before = json.load(file)
        share = before.get("unknown_share")
        unknown = "" if share is None else f"; {share:.1%} of the words are unknown, and count as one"
        print(
            f"perplexity on the validation data (mean of forward and backward): {before['perplexity']:.2f} before, "
            f"{metrics['best_validation_perplexity']:.2f} after{unknown}"
        )
