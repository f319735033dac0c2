"""How the words of a biLM become rows of ids: as bytes, or as code points."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from elmo_tasks.bilm import characters, code_points
from elmo_tasks.bilm.characters import padded_rows
from elmo_tasks.bilm.options import BilmOptions

__all__ = ["BYTES", "WordRows"]


@dataclass(frozen=True)
class WordRows:
    """
    The rows of ids that a biLM takes, one for each word.

    # Parameters

    width
        How many ids a row has.
    n_ids
        The number of different ids; 0 is for places without a word.
    boundaries
        The words that begin and end a sentence.
    row_of
        From a word to its row, of shape `(width,)`, int64.
    is_cut
        Whether a word is too long for a row, and is cut.
    room
        How long a word may be, for messages.
    made_by
        The token indexers that make such rows, for messages.
    """

    width: int
    n_ids: int
    boundaries: tuple[str, str]
    row_of: Callable[[str], np.ndarray]
    is_cut: Callable[[str], bool]
    room: str
    made_by: str

    @classmethod
    def of(cls, options: BilmOptions) -> "WordRows":
        """The rows of a biLM with these options."""
        if options.dictionaries is None:
            return BYTES
        width = options.dictionaries.max_characters
        return cls(
            width,
            code_points.N_CODE_POINT_IDS,
            (code_points.BEGIN_OF_SENTENCE, code_points.END_OF_SENTENCE),
            partial(code_points.word_to_code_points, width=width),
            partial(code_points.is_cut, width=width),
            f"{width - 2} characters",
            f"the token indexer 'elmo' with unicode_characters {width} makes them",
        )

    def batch(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """Sentences as a batch of ids, of shape `(batch_size, timesteps, width)`: see `padded_rows`."""
        return padded_rows(sentences, self.row_of, self.width)

    def boundary_rows(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the begin and of the end of a sentence, each of shape `(width,)`."""
        begin, end = (torch.tensor(self.row_of(word)) for word in self.boundaries)
        return begin, end


BYTES = WordRows(
    characters.MAX_CHARACTERS_PER_TOKEN,
    characters.N_CHARACTER_IDS,
    (characters.BEGIN_OF_SENTENCE, characters.END_OF_SENTENCE),
    characters.word_to_character_ids,
    characters.is_cut,
    f"{characters.MAX_BYTES} bytes of UTF-8",
    "the token indexers 'elmo' and 'elmo_characters' make them",
)
"""Those of the public scheme."""
