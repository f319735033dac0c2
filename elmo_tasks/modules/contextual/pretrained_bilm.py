"""The biLM of an AllenNLP model: made from a config, frozen, and run once a batch for all its embedders."""

from typing import Any, ClassVar, Literal, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path

from elmo_tasks.bilm import Bilm, BilmOptions, BilmOutput, CachedBilm
from elmo_tasks.modules.contextual.contextual_model import ContextualModel, layer_cache
from elmo_tasks.modules.contextual.shared_pass import SharedPass

__all__ = ["PretrainedBilm"]


@ContextualModel.register("bilm")
class PretrainedBilm(ContextualModel):
    """
    The biLM that the embedders of a model share. It computes the layers of a batch once, however many embedders ask for
    them; a frozen one without gradients. Where it is trained, losses of several calls on one batch are added before
    `backward`, or have `retain_graph=True`.

    AllenNLP drops the key `pretrained_file` when it loads an archive: there the weights come from the archive itself.
    The options are a part of the config for the same reason, so that an archive needs no other file; in Jsonnet,
    `import 'options.json'` puts them there.

    Registered as a `ContextualModel` with name "bilm", its default.

    # Parameters

    options : `Dict[str, Any]`
        The content of the biLM's `options.json`.
    pretrained_file : `str`, optional
        Path or URL of the weights, an HDF5 file in the public format; or the path of the `encoder.pkl` in the folder of
        a model of ELMoForManyLangs. `None` only where the weights come from elsewhere before the first batch (an
        archive, a checkpoint, an initializer "pretrained"), or are trained from random ones.
    requires_grad : `bool`
        Whether the biLM is trained with the model. The paper freezes it (section 3.3).
    stateful : `bool`
        See `elmo_tasks.bilm.Bilm`: as in AllenNLP, a batch then starts in the state of the previous one. For comparison
        only.
    precision : `Literal["float32", "bf16"]`
        The precision of the biLM's products: see `elmo_tasks.bilm.Bilm`.
    cache_folder : `str`, optional
        Where the layers of a frozen biLM's sentences are kept on disk, for this run and later ones; by default the
        folder in the environment variable `ELMO_TASKS_CACHE`, if it is set. A folder that cannot be used, or that
        other users could have written to (see `ELMO_TASKS_ALLOW_SHARED`), is a warning and not an error: the results
        are the same, and a job that has waited in a queue is not lost.
    cache_dtype : `Literal["float32", "float16"]`
        How the cache keeps numbers: exactly, or rounded in half the space. See `elmo_tasks.bilm.LayerCache`.
    cache_max_bytes : `int`, optional
        The size limit of the cache: by default 20 GB, or half of what the disk has free.

    # Raises

    `ConfigurationError`
        If options or weights are not those of a biLM, or do not match; or if a value is out of its range.
    """

    weights_key: ClassVar[str] = "bilm."

    def __init__(
        self,
        options: dict[str, Any],
        pretrained_file: Optional[str] = None,
        requires_grad: bool = False,
        stateful: bool = False,
        precision: Literal["float32", "bf16"] = "float32",
        cache_folder: Optional[str] = None,
        cache_dtype: Literal["float32", "float16"] = "float32",
        cache_max_bytes: Optional[int] = None,
    ) -> None:
        super().__init__()
        if isinstance(options, str):
            raise ConfigurationError(
                f"'options' must be the content of an options.json, not its path, but is {options!r}: in Jsonnet write "
                f"`options: import '{options}'`, so that the archive of your model does not need the file"
            )
        try:
            self.bilm = Bilm(
                BilmOptions.from_dict(options),
                stateful=stateful,
                precision=precision,
            )
            if pretrained_file is not None:
                self.bilm.load_weights(cached_path(pretrained_file))
            cache = layer_cache(cache_folder, cache_dtype, cache_max_bytes)
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"the biLM of this model cannot be made: {error}") from error
        self.bilm.requires_grad_(requires_grad)
        self.has_weights = pretrained_file is not None
        self._pass = SharedPass()
        self._cached_bilm = CachedBilm(self.bilm, cache) if cache is not None else None

    def get_output_dim(self) -> int:
        """Units of each layer."""
        return self.bilm.get_output_dim()

    @property
    def num_layers(self) -> int:
        """The number of layers, including the context-insensitive one."""
        return self.bilm.num_layers

    def forward(self, character_ids: torch.Tensor) -> BilmOutput:
        """
        # Parameters

        character_ids : `torch.Tensor`
            Shape `(batch_size, timesteps, 50)`, as the token indexers `elmo` and `elmo_characters` give it.

        # Returns

        `BilmOutput`
            All layers and the mask.

        # Raises

        `ConfigurationError`
            If the biLM is frozen and its weights were never loaded.
        """
        weights = list(self.bilm.parameters())
        is_trained = self.note_training(weights)
        if not (self.has_weights or is_trained):
            raise ConfigurationError(
                "this biLM is frozen and its weights were never loaded: set 'pretrained_file' to an HDF5 file in the "
                "public ELMo format, or 'requires_grad' to true, without 'no_grad' in the trainer, to train it from "
                "random weights"
            )
        if is_trained and self._cached_bilm is not None:
            self._cached_bilm.forget()
        with torch.set_grad_enabled(is_trained and torch.is_grad_enabled()):
            bilm = self.bilm if is_trained else self._cached_bilm or self.bilm
            mode = self.bilm.carried_states, torch.is_grad_enabled()
            return self._pass.output(character_ids, weights, mode, lambda: bilm(character_ids))
