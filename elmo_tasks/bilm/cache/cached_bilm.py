"""A biLM with a layer cache: it computes only the sentences that the cache lacks."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from elmo_tasks.bilm.bilm import Bilm
from elmo_tasks.bilm.cache.cached_layers import cached_layers, numbers_of_torch
from elmo_tasks.bilm.cache.layer_cache import LayerCache
from elmo_tasks.bilm.lstm.frozen import WeightsState, bilm_digest, n_changes
from elmo_tasks.bilm.options import BilmOptions
from elmo_tasks.bilm.outputs import BilmOutput
from elmo_tasks.bilm.packing import sentence_lengths
from elmo_tasks.version import __version__

__all__ = ["CachedBilm"]

# Types whose values float32 represents exactly.
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


class CachedBilm:
    """
    A frozen biLM and its layer cache. The sentences of a batch that the cache lacks are computed as one smaller batch,
    and added to it.

    The cache is bypassed when the layers are not a pure function of the words (a parameter requires a gradient, the
    biLM is stateful), and in float64, which the cache's float32 would round. Weights may be loaded or changed in place
    at any time; only changes in place by way of `.data` go unnoticed.

    # Parameters

    bilm
        The biLM, which is not copied.
    cache
        The cache, which other biLMs may use too.
    """

    def __init__(self, bilm: Bilm, cache: LayerCache) -> None:
        self.bilm = bilm
        self.cache = cache
        # The digest of the weights, and the options and weights of which it is.
        self._weights_digest = b""
        self._hashed: BilmOptions | None = None
        self._state = WeightsState()

    def __call__(self, inputs: torch.Tensor | Sequence[Sequence[str]]) -> BilmOutput:
        """
        Takes, returns and raises what `Bilm.forward` does. A sentence has the layers of the batch that it was first
        computed in, which matrix products of another size can round differently, by about 1e-6.
        """
        character_ids = inputs if isinstance(inputs, torch.Tensor) else self.bilm.word_rows.batch(inputs)
        if not self._is_repeatable():
            self.forget()
            return self.bilm(character_ids)  # type: ignore[no-any-return]
        ids = character_ids.cpu()
        lengths = sentence_lengths(ids, self.bilm.word_rows)
        # Shape: (batch_size, timesteps)
        mask = torch.from_numpy(np.arange(ids.size(1)) < lengths[:, None])
        # Shape of each: (n_words, width)
        sentences = [row[:n_words] for row, n_words in zip(ids.numpy(), lengths, strict=True)]
        # Shape: (n_layers, batch_size, timesteps, dim)
        layers = cached_layers(
            self.cache,
            self._model_digest(),
            sentences,
            mask.numpy(),
            (self.bilm.num_layers, self.bilm.get_output_dim()),
            lambda rows: self._compute(character_ids[rows], [len(sentences[row]) for row in rows]),
        )
        weight = next(self.bilm.parameters())
        return BilmOutput(tuple(torch.from_numpy(layers).to(weight.device, weight.dtype)), mask.to(weight.device))

    def forget(self) -> None:
        """To be called where weights are trained, which may change in ways that `WeightsState` does not see."""
        self._state = WeightsState()

    def _compute(self, character_ids: torch.Tensor, lengths: list[int]) -> list[np.ndarray]:
        """The layers of each sentence, of shape `(n_layers, n_words, dim)`, as the cache will return them."""
        # Shape of each: (batch_size, timesteps, dim)
        layers = [layer.float().cpu().numpy() for layer in self.bilm(character_ids).layers]
        return [
            self.cache.rounded(np.stack([layer[row, :n_words] for layer in layers]))
            for row, n_words in enumerate(lengths)
        ]

    def _is_repeatable(self) -> bool:
        weights = list(self.bilm.parameters())
        return (
            not self.bilm.stateful
            and weights[0].dtype in _DTYPES
            and not any(weight.requires_grad or n_changes(weight) is None for weight in weights)
        )

    def _model_digest(self) -> bytes:
        """
        The digest of all that determines the numbers, the release of this package included. The weights are hashed
        again only when they were exchanged, moved or changed.
        """
        weights = dict(self.bilm.named_parameters())
        if self._hashed != self.bilm.options or not self._state.is_of(weights.values()):
            # With the dictionaries, if it has any.
            self._weights_digest = bilm_digest(self.bilm.options, self.bilm.state_dict())
            self._hashed, self._state = self.bilm.options, WeightsState(weights.values())
        device = next(iter(weights.values())).device.type
        settings = __version__, self.bilm.precision, device, numbers_of_torch()
        return hashlib.blake2b(repr(settings).encode() + self._weights_digest, digest_size=32).digest()
