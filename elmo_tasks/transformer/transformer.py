"""A transformer that gives the layers of words: words to pieces to windows, and back."""

import hashlib
from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import nn

from elmo_tasks.bilm.outputs import BilmOutput
from elmo_tasks.printable import one_line
from elmo_tasks.transformer.checkpoint import size_of
from elmo_tasks.transformer.windows import Window, windows
from elmo_tasks.transformer.word_pieces import SpecialPieces

__all__ = ["Transformer"]

# For a model whose positions have no limit, as T5's and XLNet's; they were trained on so many.
_MAX_PIECES = 512
# Types of networks whose convolutions, hashes or neighbouring pieces are those of padding too although it is masked.
_READING_PADDING = ("convbert", "mobilebert", "nystromformer", "yoso")


class Transformer(nn.Module):
    """
    A network of the library `transformers`, with all its layers for each word of a batch of sentences. Each sentence is
    read on its own, between the pieces that the model expects around it; one that is longer than the model can read is
    read in windows, see `windows`.

    # Parameters

    network
        See `make_network` and `load_network`.
    config
        Its architecture: see `read_config`.
    special
        The pieces around those of a sentence.
    pooling
        The vector of a word: that of its first piece, or the mean of its pieces.
    max_pieces
        The most pieces that are read at once, the special ones among them. By default as many as the model has
        positions, or 512 if these have no limit.
    overlap
        How many pieces two windows of a long sentence have in common; by default half of a window.
    max_pieces_per_batch
        How many pieces are computed at once, with padding; more take more memory.

    # Raises

    `ValueError`
        If a value is out of its range, or the network cannot read a sentence of any length, as that of Funnel.
    """

    def __init__(
        self,
        network: nn.Module,
        config: dict[str, Any],
        special: SpecialPieces,
        *,
        pooling: Literal["first", "mean"] = "mean",
        max_pieces: int | None = None,
        overlap: int | None = None,
        max_pieces_per_batch: int = 16384,
    ) -> None:
        super().__init__()
        if pooling not in ("first", "mean"):
            raise ValueError(f"pooling must be 'first' or 'mean', but is {pooling!r}")
        self.config = config
        self.special = special
        self.pooling = pooling
        self.num_layers, self._dim = size_of(config)
        self.network = network
        self._inputs = frozenset(signature(network.forward).parameters)
        # The vectors of words would depend on the longest sentence of their batch.
        self._reads_padding = "attention_mask" not in self._inputs or config.get("model_type") in _READING_PADDING
        positions = _n_positions(network)
        longest = (_MAX_PIECES if positions is None else positions) if max_pieces is None else max_pieces
        self._window = longest - len(special)
        self._overlap = self._window // 2 if overlap is None else overlap
        self._max_pieces_per_batch = max_pieces_per_batch
        if max_pieces is not None and positions is not None and max_pieces > positions:
            raise ValueError(
                f"max_pieces must be at most {positions}, the positions of the model, but is {max_pieces}: a longer "
                "sentence is read in windows"
            )
        if max_pieces_per_batch < 1:
            raise ValueError(f"max_pieces_per_batch must be at least 1, but is {max_pieces_per_batch}")
        if self._window < 1:
            raise ValueError(
                f"max_pieces must leave room between the {len(special)} special pieces of the model, but is "
                f"{self._window + len(special)}"
            )
        if not 0 <= self._overlap < self._window:
            raise ValueError(f"overlap must be from 0 to {self._window - 1}, but is {self._overlap}")
        self._check_network()

    def get_output_dim(self) -> int:
        """Units of each layer."""
        return self._dim

    def settings(self) -> bytes:
        """A digest of all but the weights that the layers depend on."""
        # Of a network that reads padding a former version has cached other layers.
        lengths = ("of one length",) if self._reads_padding else ()
        settings = (sorted(self.config.items()), self.special, self.pooling, self._window, self._overlap, *lengths)
        return hashlib.blake2b(repr(settings).encode(), digest_size=32).digest()

    def forward(self, pieces: torch.Tensor) -> BilmOutput:
        """
        # Parameters

        pieces : `torch.Tensor`
            Shape `(batch_size, timesteps, max_pieces)`: one more than the id of each piece of each word, zero where
            there is none.

        # Returns

        `BilmOutput`
            All layers: that of the embeddings and those of the network from the lowest to the highest. And the mask.

        # Raises

        `ValueError`
            If the network gives other layers than its config says, or lacks a piece.
        """
        weight = next(self.network.parameters())
        device, dtype = weight.device, weight.dtype
        plan = _Plan.of(pieces, self._window, self._overlap)
        # Shape: (batch_size, timesteps)
        mask = torch.from_numpy(plan.mask).to(device)
        if not plan.windows:
            nothing = torch.zeros(*mask.shape, self._dim, dtype=dtype, device=device)
            return BilmOutput((nothing,) * self.num_layers, mask)
        self._check_pieces(plan.ids)
        # Shape: (n_pieces,)
        places = np.empty(len(plan.ids), np.int64)
        parts: list[tuple[torch.Tensor, ...]] = []
        n_computed = 0
        for group in self._groups(plan.windows):
            layers = self._compute(plan.ids, group, device)
            length = layers[0].size(1)
            for row, window in enumerate(group):
                start = n_computed + row * length + len(self.special.before) - window.start
                places[window.first : window.last] = start + np.arange(window.first, window.last)
            n_computed += len(group) * length
            # Shape of each: (n_windows * length, dim). Under autocast some networks give them in half precision.
            parts.append(tuple(layer.flatten(0, 1).to(dtype) for layer in layers))
        pieces_of_words = torch.from_numpy(places).to(device)
        first_pieces = torch.from_numpy(plan.first_pieces).to(device)
        return BilmOutput(
            tuple(
                self._words(torch.cat(vectors), pieces_of_words, first_pieces, mask)
                for vectors in zip(*parts, strict=True)
            ),
            mask,
        )

    def _check_network(self) -> None:
        """Before any text is read: some types read parts of a fixed length, or letters in place of pieces."""
        was_training = self.network.training
        self.network.eval()
        # Shape of each: (1, 1, n_pieces)
        sentences = [torch.ones(1, 1, min(length, self._window), dtype=torch.long) for length in (1, 7)]
        try:
            # What is drawn here would be missing in a training.
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                for pieces in sentences:
                    self(pieces)
        except (MemoryError, torch.OutOfMemoryError):
            raise
        # The library raises errors of any class.
        except Exception as error:
            reason = one_line(str(error)).rstrip(".") or type(error).__name__
            raise ValueError(
                f"a transformer must give all its layers for a sentence of any length, but one of type "
                f"{self.config.get('model_type')!r} does not: {reason:.200}. Take another checkpoint, as one of BERT"
            ) from error
        finally:
            self.network.train(was_training)

    def _check_pieces(self, ids: np.ndarray) -> None:
        network: Any = self.network
        n_known = len(network.get_input_embeddings().weight)
        if (highest := int(ids.max())) >= n_known:
            raise ValueError(
                f"a transformer must know each piece, but one of type {self.config.get('model_type')!r} has {n_known}, "
                f"and there is one with the number {highest}: give the token indexer the model_name of the transformer"
            )

    def _groups(self, of_batch: Sequence[Window]) -> Iterator[list[Window]]:
        """
        Windows that are computed at once, in the order of their lengths, so that there is little padding; of one length
        where the network does not hide it.
        """
        group: list[Window] = []
        for window in sorted(of_batch, key=lambda window: window.start - window.end):
            longest = group[0] if group else window
            length = longest.end - longest.start + len(self.special)
            is_shorter = window.end - window.start < longest.end - longest.start
            if group and (
                (len(group) + 1) * length > self._max_pieces_per_batch or (is_shorter and self._reads_padding)
            ):
                yield group
                group = []
            group.append(window)
        if group:
            yield group

    def _compute(self, ids: np.ndarray, group: list[Window], device: torch.device) -> tuple[torch.Tensor, ...]:
        """All layers of some windows: each of shape `(n_windows, length, dim)`."""
        lengths = np.array([window.end - window.start for window in group]) + len(self.special)
        length = int(lengths.max())
        before, after = self.special.before, self.special.after
        # Shape of each: (n_windows, length). Padding is masked, and any piece will do.
        inputs = {"input_ids": np.zeros((len(group), length), np.int64)}
        for row, window in enumerate(group):
            inputs["input_ids"][row, : lengths[row]] = (*before, *ids[window.start : window.end], *after)
        inputs["attention_mask"] = (np.arange(length) < lengths[:, None]).astype(np.int64)
        if self.special.types is not None:
            inputs["token_type_ids"] = np.full((len(group), length), self.special.types[len(before)])
            inputs["token_type_ids"][:, : len(before)] = self.special.types[: len(before)]
            for row, end in enumerate(lengths):
                inputs["token_type_ids"][row, end - len(after) : end] = self.special.types[len(before) + 1 :]
        # Some networks have no mask, and some tokenizers types of which their network knows nothing.
        tensors = {name: torch.from_numpy(array).to(device) for name, array in inputs.items() if name in self._inputs}
        layers = self.network(**tensors, output_hidden_states=True, return_dict=True).hidden_states
        if len(layers) != self.num_layers or any(layer.shape[1:] != (length, self._dim) for layer in layers):
            raise ValueError(
                f"a transformer must give {self.num_layers} layers with {self._dim} units for each piece, as its "
                f"config says, but one of type {self.config.get('model_type')!r} gives {len(layers)}, the last of "
                f"shape {tuple(layers[-1].shape)} for {len(group)} x {length} pieces"
            )
        return tuple(layers)

    def _words(
        self, vectors: torch.Tensor, pieces: torch.Tensor, first_pieces: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        """The vectors of words, from those of all pieces: shape `(batch_size, timesteps, dim)`."""
        if self.pooling == "first":
            words = vectors[pieces[first_pieces]]
        else:
            # Shape: (n_words, dim)
            words = nn.functional.embedding_bag(pieces, vectors, first_pieces, mode="mean")
        layer = words.new_zeros(*mask.shape, self._dim)
        layer[mask] = words
        return layer


class _Plan(NamedTuple):
    """
    The pieces of a batch without padding, one sentence after the other.

    # Parameters

    ids
        Shape `(n_pieces,)`.
    first_pieces
        Of each word, in `ids`. Shape `(n_words,)`.
    windows
        Those of all sentences.
    mask
        Where there is a word. Shape `(batch_size, timesteps)`.
    """

    ids: np.ndarray
    first_pieces: np.ndarray
    windows: list[Window]
    mask: np.ndarray

    @classmethod
    def of(cls, pieces: torch.Tensor, size: int, overlap: int) -> "_Plan":
        # Shape: (batch_size, timesteps, max_pieces)
        numbers = pieces.cpu().numpy()
        is_piece = numbers > 0
        # Shape: (batch_size, timesteps)
        counts = is_piece.sum(2)
        mask = counts > 0
        ends = np.cumsum(counts[mask])
        of_batch: list[Window] = []
        start = 0
        for n_pieces in counts.sum(1).tolist():
            if n_pieces:
                of_batch += [Window(*(start + edge for edge in window)) for window in windows(n_pieces, size, overlap)]
            start += n_pieces
        return cls(numbers[is_piece] - 1, ends - counts[mask], of_batch, mask)


# The names of tables of positions: of BERT and its kind, of GPT, of GPT-2 and of BART.
_TABLES = ("position_embeddings", "positions_embed", "wpe", "embed_positions")


def _n_positions(network: nn.Module) -> int | None:
    """How many pieces a network can read at once; `None` if it has no table of positions."""
    for name, module in network.named_modules():
        if isinstance(module, nn.Embedding) and name.split(".")[-1] in _TABLES:
            # RoBERTa counts from the number after that of its padding; BART's table has more than its config says.
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            of_table = module.num_embeddings - unused
            of_config = getattr(network.config, "max_position_embeddings", None)
            return min(of_table, of_config) if isinstance(of_config, int) and of_config > 0 else of_table
    return None
