"""Callbacks that print the learned mix of layers, and the perplexity before and after training."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.util import evaluate

from elmo_tasks.bilm.outputs import softmax_weights
from elmo_tasks.files.json_files import read_json, write_json

__all__ = ["LearnedMixCallback", "PerplexityBeforeCallback", "learned_mixes"]

_GAMMA = ".mix.gamma"
_WEIGHTS = ".mix.layer_weights"
# The `elmo` token embedders of our models.
_PLACES = {
    "text_field_embedder.token_embedder_elmo": "input",
    "output_embedder.token_embedder_elmo": "output",
}


@TrainerCallback.register("elmo_learned_mix")
class LearnedMixCallback(TrainerCallback):
    """
    Prints at the end of training the mix of layers that ELMo has learned at each place: gamma and
    the weights after the softmax, Eq. (1) of the paper. It is one of the trainer's default
    callbacks (`enable_default_callbacks`).
    """

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: dict[str, Any] | None = None,
        *args: Any,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        # The model now has the weights of its best epoch. An interrupted run has no metrics.
        if not is_primary or not metrics:
            return
        mixes = []
        for mix in learned_mixes(dict(trainer.model.named_parameters())):
            weights = " ".join(f"{weight:.3f}" for weight in mix["weights"])
            layers = f"layers {weights}" if weights else "a single layer"
            mixes.append(f"{mix['place']}: {layers}, gamma {mix['gamma']:.3f}")
        if mixes:
            print(f"ELMo has learned: {'; '.join(mixes)}")


def learned_mixes(weights: Mapping[str, torch.Tensor]) -> list[dict[str, Any]]:
    """
    For each `place` of ELMo: `gamma`, and the `weights` of the layers after the softmax; none for a
    single layer.
    """
    mixes = []
    for name, gamma in weights.items():
        if not name.endswith(_GAMMA):
            continue
        embedder = name.removesuffix(_GAMMA)
        layer_weights: list[float] = []
        if embedder + _WEIGHTS in weights:
            layer_weights = softmax_weights(weights[embedder + _WEIGHTS])
        mixes.append(
            {
                "place": _PLACES.get(embedder, embedder),
                "weights": layer_weights,
                "gamma": gamma.item(),
            }
        )
    return mixes


@TrainerCallback.register("elmo_perplexity_before")
class PerplexityBeforeCallback(TrainerCallback):
    """
    Evaluates the model on the validation data before its first step and writes
    `metrics_before.json`. At the end of training, prints the perplexities before and after, as in
    Table 7 of the paper's appendix, and the share of words that are not in the vocabulary and count
    as one word.
    """

    @property
    def _path(self) -> Path:
        return Path(self.serialization_dir, "metrics_before.json")

    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        # In a recovered run, the weights have already changed.
        if not self._path.exists():
            metrics = evaluate(trainer.model, trainer._validation_data_loader, trainer.cuda_device)
            if is_primary:
                write_json(self._path, metrics)

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
        before = read_json(self._path)
        print(
            f"perplexity on the validation data (mean of forward and backward): "
            f"{before['perplexity']:.2f} before, "
            f"{metrics['best_validation_perplexity']:.2f} after; "
            f"{before['unknown_share']:.1%} of the words are unknown, and count as one"
        )
