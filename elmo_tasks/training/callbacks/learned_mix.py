"""The mix of layers that a training learns: in its log by step, and in one line at its end."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.callbacks.log_writer import LogWriterCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer

from elmo_tasks.text import one_line

__all__ = ["LearnedMixCallback"]

_GAMMA, _WEIGHTS = ".mix.gamma", ".mix.layer_weights"
# In the names of the weights of a transformer where the biLM is.
_TRANSFORMER = ".transformer_model."


class _Mix(NamedTuple):
    """
    # Parameters

    place
        `input`, `output`, or the name of the embedder in a model that is not ours.
    gamma
        Shape `()`.
    weights
        Before the softmax, shape `(n_layers,)`; `None` for a single layer.
    """

    place: str
    gamma: torch.nn.Parameter
    weights: torch.nn.Parameter | None


@TrainerCallback.register("elmo_learned_mix")
class LearnedMixCallback(TrainerCallback):
    """
    Prints at the end of a training the mix of layers that each place of ELMo has learnt: gamma and the weights after
    the softmax, Eq. (1) of the paper. If the trainer has a callback that writes statistics, as AllenNLP's `tensorboard`
    and `wandb`, gamma, the weights and their gradients are written there too, every `summary_interval` steps.

    Registered as a `TrainerCallback` with name "elmo_learned_mix". Every training has it, as one of the trainer's
    default callbacks (`enable_default_callbacks`); a model without ELMo is left alone.
    """

    def on_batch(
        self, trainer: GradientDescentTrainer, *args: Any, is_training: bool, is_primary: bool = True, **kwargs: Any
    ) -> None:
        if not is_training or not is_primary:
            return
        writers = [each for each in trainer._callbacks if isinstance(each, LogWriterCallback)]
        for writer in writers:
            if writer._should_log_this_batch():
                for mix in _mixes(trainer.model):
                    writer.log_scalars(dict(_scalars(mix)), log_prefix=f"elmo_{mix.place}")

    def on_end(
        self,
        trainer: GradientDescentTrainer,
        metrics: dict[str, Any] | None = None,
        *args: Any,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        # By now the model has the weights of its best epoch. An interrupted training has no metrics.
        if not is_primary or not metrics:
            return
        if mixes := [_described(mix) for mix in _mixes(trainer.model)]:
            names = (name for name, _ in trainer.model.named_parameters())
            whose = "The transformer" if any(_TRANSFORMER in name for name in names) else "ELMo"
            print(one_line(f"{whose} has learnt: {'; '.join(mixes)}"))


def _mixes(model: torch.nn.Module) -> Iterator[_Mix]:
    """By the names of the parameters: those of `LayerMix` in `ElmoTokenEmbedder`."""
    parameters = dict(model.named_parameters())
    for name, gamma in parameters.items():
        if name.endswith(_GAMMA):
            embedder = name.removesuffix(_GAMMA)
            yield _Mix(_place(embedder), gamma, parameters.get(embedder + _WEIGHTS))


def _place(embedder: str) -> str:
    field, _, rest = embedder.partition(".")
    places = {"text_field_embedder": "input", "output_embedder": "output"}
    return places[field] if field in places and rest == "token_embedder_elmo" else embedder


def _scalars(mix: _Mix) -> Iterator[tuple[str, float]]:
    yield "gamma", mix.gamma.item()
    if mix.gamma.grad is not None:
        yield "gamma_gradient", mix.gamma.grad.item()
    if mix.weights is not None:
        yield from ((f"layer_{layer}", weight) for layer, weight in enumerate(_normalized(mix.weights)))
        if mix.weights.grad is not None:
            # Of the weights before the softmax, which are what is trained.
            yield from ((f"layer_{layer}_gradient", value) for layer, value in enumerate(mix.weights.grad.tolist()))


def _normalized(weights: torch.Tensor) -> list[float]:
    numbers: list[float] = weights.detach().float().softmax(0).tolist()
    return numbers


def _described(mix: _Mix) -> str:
    weights = "a single layer"
    if mix.weights is not None:
        weights = "layers " + " ".join(f"{weight:.3f}" for weight in _normalized(mix.weights))
    return f"{mix.place}: {weights}, gamma {mix.gamma.item():.3f}"
