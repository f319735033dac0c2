"""A frozen transformer with a layer cache: it computes only the sentences that the cache lacks."""

import hashlib

import numpy as np
import torch

from elmo_tasks.bilm.cache.cached_layers import cached_layers, numbers_of_torch
from elmo_tasks.bilm.cache.layer_cache import LayerCache
from elmo_tasks.bilm.lstm.frozen import WeightsState, bilm_digest, n_changes
from elmo_tasks.bilm.outputs import BilmOutput
from elmo_tasks.transformer.transformer import Transformer
from elmo_tasks.version import __version__

__all__ = ["CachedTransformer"]


class CachedTransformer:
    """
    A frozen transformer and its layer cache: see `CachedBilm`. The key of a sentence is its pieces and a digest of all
    that computes their layers; the tokenizer has its say by the pieces. The cache is bypassed for other types than
    float32, and for weights whose changes cannot be noticed.

    # Parameters

    transformer
        The transformer, which is not copied, in evaluation mode and without gradients.
    cache
        The cache, which other models may use too.
    """

    def __init__(self, transformer: Transformer, cache: LayerCache) -> None:
        self.transformer = transformer
        self.cache = cache
        self._weights_digest = b""
        self._state = WeightsState()

    def __call__(self, pieces: torch.Tensor) -> BilmOutput:
        """Takes, returns and raises what `Transformer.forward` does."""
        weight = next(self.transformer.parameters())
        if weight.dtype is not torch.float32 or any(n_changes(each) is None for each in self.transformer.parameters()):
            output: BilmOutput = self.transformer(pieces)
            return output
        numbers = pieces.cpu().numpy()
        # Shape: (batch_size, timesteps)
        mask: np.ndarray = np.any(numbers > 0, axis=2)
        # A sentence has the same key whatever the padding of its batch. Shape of each: (n_words, max_pieces)
        sentences = [row[words][:, (row > 0).any(0)] for row, words in zip(numbers, mask, strict=True)]

        def compute(rows: list[int]) -> list[np.ndarray]:
            layers = [layer.cpu().numpy() for layer in self.transformer(pieces[rows]).layers]
            return [
                self.cache.rounded(np.stack([layer[number, mask[row]] for layer in layers]))
                for number, row in enumerate(rows)
            ]

        # Shape: (n_layers, batch_size, timesteps, dim)
        layers = cached_layers(
            self.cache,
            self._model_digest(),
            sentences,
            mask,
            (self.transformer.num_layers, self.transformer.get_output_dim()),
            compute,
        )
        return BilmOutput(tuple(torch.from_numpy(layers).to(weight.device)), torch.from_numpy(mask).to(weight.device))

    def forget(self) -> None:
        """To be called where weights are trained, which may change in ways that `WeightsState` does not see."""
        self._state = WeightsState()

    def _model_digest(self) -> bytes:
        import transformers

        weights = dict(self.transformer.named_parameters())
        if not self._state.is_of(weights.values()):
            self._weights_digest = bilm_digest("transformer", self.transformer.state_dict())
            self._state = WeightsState(weights.values())
        device = next(iter(weights.values())).device.type
        settings = __version__, transformers.__version__, device, numbers_of_torch()
        return hashlib.blake2b(
            repr(settings).encode() + self.transformer.settings() + self._weights_digest, digest_size=32
        ).digest()
