"""The second kind of character encoder: Unicode characters and words, each with a dictionary of the biLM's own."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from elmo_tasks.bilm.character_encoder import CharacterEncoder
from elmo_tasks.bilm.code_points import BEGIN_OF_SENTENCE, END_OF_SENTENCE, code_points_to_words
from elmo_tasks.bilm.options import BilmOptions

__all__ = ["CHARACTER_KEYS", "WORD_KEYS", "Dictionary", "DictionaryEncoder"]

_UNKNOWN, _PADDING, _BEGIN_OF_WORD, _END_OF_WORD = "<oov>", "<pad>", "<bow>", "<eow>"
# Spelled as a single character each.
_BOUNDARIES = (BEGIN_OF_SENTENCE, END_OF_SENTENCE)

CHARACTER_KEYS = (*_BOUNDARIES, _UNKNOWN, _PADDING, _BEGIN_OF_WORD, _END_OF_WORD)
"""The entries that a dictionary of characters must have."""
WORD_KEYS = (*_BOUNDARIES, _UNKNOWN)
"""The entries that a dictionary of words must have."""


class Dictionary(nn.Module):
    """
    The rows of an embedding by their keys. The keys are a part of the state, as bytes of UTF-8 with a line feed between
    them, so that they are wherever the weights are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: str) -> int:
        return self._rows[key]

    def rows(self, keys: Sequence[str]) -> list[int]:
        """The rows of some keys; that of `<oov>` for one that is not there. A `ValueError` if nothing was loaded."""
        if _UNKNOWN not in self._rows:
            raise ValueError(
                f"a dictionary of a biLM must have the key {_UNKNOWN}, but has {len(self)} others: load one that was "
                "trained, with its weights"
            )
        unknown = self._rows[_UNKNOWN]
        return [self._rows.get(key, unknown) for key in keys]

    @staticmethod
    def state_of(keys: Sequence[str]) -> torch.Tensor:
        """The state of a dictionary with these keys, in the order of their rows."""
        # Lone surrogates are keys too.
        return torch.from_numpy(np.frombuffer("\n".join(keys).encode("utf-8", "surrogatepass"), np.uint8).copy())

    def get_extra_state(self) -> torch.Tensor:
        return self.state_of(list(self._rows))

    def set_extra_state(self, state: Any) -> None:
        keys = state.cpu().numpy().tobytes().decode("utf-8", "surrogatepass").split("\n") if len(state) else []
        self._rows = {key: row for row, key in enumerate(keys)}


class DictionaryEncoder(CharacterEncoder):
    """
    A character CNN over the Unicode characters of a word, whose output the projection reads after an embedding of the
    word (Che et al. 2018, ELMoForManyLangs). Both have dictionaries, of which a biLM may lack one; what is not in them
    is `<oov>`.

    A word is cut after `max_characters - 2` characters, also for its embedding. Padding within a word has an embedding,
    which is not zero.

    # Parameters

    options
        The biLM's shape, with `dictionaries`.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__(options)
        sizes = options.dictionaries
        assert sizes is not None
        self.word_embedding = nn.Embedding(sizes.n_words, sizes.word_dim) if sizes.n_words else None
        self.characters = Dictionary() if sizes.n_characters else None
        self.words = Dictionary() if sizes.n_words else None

    def _encode_distinct(self, words: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        spelled = code_points_to_words(words.cpu().numpy())
        others = None
        if self.words is not None and self.word_embedding is not None:
            # Shape: (n_words, word_dim)
            others = self.word_embedding(torch.tensor(self.words.rows(spelled), device=words.device)).to(dtype)
        if self.characters is None:
            assert others is not None
            return self._linear_layers(dtype).projection(others)
        # Shape: (n_words, width)
        ids = torch.from_numpy(self.character_ids(spelled)).to(words.device)
        return self._encode_by_length(ids, ids != self.characters[_PADDING], dtype, others)

    def character_ids(self, words: Sequence[str]) -> np.ndarray:
        """
        # Parameters

        words
            Words that have been cut.

        # Returns

        `np.ndarray`
            Shape `(n_words, width)`, int64: the rows of their characters.
        """
        assert self.characters is not None
        # Exchanged: ELMoForManyLangs trained its models so, and keeps it for their sake.
        begin, end = self.characters[_END_OF_WORD], self.characters[_BEGIN_OF_WORD]
        ids = np.full((len(words), self._width), self.characters[_PADDING], dtype=np.int64)
        for row, word in zip(ids, words, strict=True):
            inner = self.characters.rows([word] if word in _BOUNDARIES else word)
            row[: len(inner) + 2] = [begin, *inner, end]
        return ids

    def word_ids(self, words: Sequence[str]) -> list[int]:
        """The rows of words that have been cut."""
        assert self.words is not None
        return self.words.rows(words)
