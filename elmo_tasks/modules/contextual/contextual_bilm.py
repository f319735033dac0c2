"""The biLM of a task model, created from a config and run once per batch for all embedders."""

from pathlib import Path
from typing import Any, Literal, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_tasks.bilm import Bilm, BilmOptions, BilmOutput, CachedBilm
from elmo_tasks.bilm.bilm import Precision
from elmo_tasks.bilm.layer_cache import shared_bilm
from elmo_tasks.files.json_files import file_digest
from elmo_tasks.files.shipped import PRETRAINED
from elmo_tasks.modules.contextual.contextual_model import (
    ContextualModel,
    SharedPass,
    configured_cache,
)

__all__ = ["ContextualBilm"]


@ContextualModel.register("bilm")
class ContextualBilm(ContextualModel):
    """
    The biLM that the embedders of a model share. A frozen biLM runs without gradients. If it is
    trained, add the losses of several calls on one batch before `backward`, or pass
    `retain_graph=True`.

    # Parameters

    options : `Dict[str, Any]`
        The content of the biLM's `options.json`: in Jsonnet, `import 'options.json'`.
    pretrained_file : `str`, optional
        Path or URL of an HDF5 file in the public format, or of the `encoder.pkl` of
        ELMoForManyLangs. Not needed to load an archive, which contains the weights.
    included, digest : `str`, optional
        The name of a biLM in this package whose weights a model's archive leaves out, and the first
        16 hexadecimal digits of the SHA-256 of its weight file at the training.
    requires_grad : `bool`
        Whether the biLM is trained with the model. The paper freezes it (section 3.3).
    cache_folder : `str`, optional
        The folder for the layers of sentences, which this run and later ones reuse; by default the
        folder in the environment variable `ELMO_TASKS_CACHE`, if it is set.
    precision, cache_dtype, cache_max_bytes
        See `elmo_tasks.bilm.Bilm` and `elmo_tasks.bilm.LayerCache`.
    """

    def __init__(
        self,
        options: dict[str, Any],
        pretrained_file: Optional[str] = None,
        included: Optional[str] = None,
        digest: Optional[str] = None,
        requires_grad: bool = False,
        precision: Precision = "float32",
        cache_folder: Optional[str] = None,
        cache_dtype: Literal["float32", "float16"] = "float32",
        cache_max_bytes: Optional[int] = None,
    ) -> None:
        super().__init__()
        weight_file = None
        if included is not None:
            weight_file = str(_included_weights(included, digest))
            self.register_load_state_dict_pre_hook(_add_included)
        try:
            self.bilm = Bilm(BilmOptions.from_dict(options), precision=precision)
            if included is None and pretrained_file is not None:
                weight_file = cached_path(pretrained_file)
            if weight_file is not None:
                self.bilm.load_weights(weight_file)
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"the biLM of this model: {error}") from error
        self.bilm.requires_grad_(requires_grad)
        self.num_layers = self.bilm.num_layers
        self.output_dim = self.bilm.get_output_dim()
        self._name = included or f"a biLM with {self.num_layers} layers of {self.output_dim} units"
        # Whether the weights were loaded, or trained from random ones.
        self._has_weights = weight_file is not None
        self.register_load_state_dict_post_hook(_note_weights)
        self._pass = SharedPass()
        cache = configured_cache(cache_folder, cache_dtype, cache_max_bytes)
        self._cached_bilm = None if cache is None else CachedBilm(self.bilm, cache)

    @property
    def summary(self) -> str:
        return f"{self._name}, {self.bilm.precision}"

    def share(self) -> None:
        """
        For predictions: uses the biLM of a different model if it is the same one, and the layers
        that either of them has computed for a sentence.
        """
        is_frozen = not any(weight.requires_grad for weight in self.bilm.parameters())
        if is_frozen and self._cached_bilm is None:
            self._cached_bilm = shared_bilm(self.bilm)
            self.bilm = self._cached_bilm.bilm

    def forward(self, character_ids: torch.Tensor) -> BilmOutput:
        """All layers and the mask, from shape `(batch_size, timesteps, 50)`."""
        weights = list(self.bilm.parameters())
        is_trained = any(weight.requires_grad for weight in weights)
        # Weights that started at random have been trained after this step, so they may be frozen
        # later.
        self._has_weights |= is_trained and self.training and torch.is_grad_enabled()
        if not (self._has_weights or is_trained):
            raise ConfigurationError(
                "expected weights for the frozen biLM, got none: set 'pretrained_file', or "
                "'requires_grad' to true (without 'no_grad' in the trainer) to train it from "
                "random weights"
            )
        bilm = self._cached_bilm or self.bilm
        needs_gradient = is_trained and torch.is_grad_enabled()
        with torch.set_grad_enabled(needs_gradient):
            return self._pass.output(
                character_ids, weights, mode=needs_gradient, compute=lambda: bilm(character_ids)
            )


def _included_weights(name: str, digest: str | None) -> Path:
    """The weight file of a biLM in this package, which must be the one of the training."""
    weights = PRETRAINED / name / "weights.hdf5"
    current_digest = file_digest(weights)[:16]
    if digest != current_digest:
        raise ConfigurationError(
            f"this model was trained with {name} {digest}, got {current_digest}"
        )
    return weights


def _add_included(module: torch.nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name, weight in module.state_dict(prefix=prefix).items():
        state.setdefault(name, weight)


def _note_weights(module: torch.nn.Module, incompatible_keys: Any) -> None:
    assert isinstance(module, ContextualBilm)
    is_missing = any("bilm." in key for key in incompatible_keys.missing_keys)
    module._has_weights |= not is_missing
