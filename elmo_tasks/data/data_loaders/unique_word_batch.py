"""A batch of a language model in a small form, which is sent from one process to another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, word_to_character_ids
from elmo_tasks.data.lm_vocabulary import NO_WORD_ID

__all__ = ["UniqueWordBatch"]


@dataclass(frozen=True)
class UniqueWordBatch:
    """
    The different words of a batch, and their places. The characters of a token are 400 bytes in the tensors of a
    model; here a token is 4 bytes, and the characters of a word are kept once. The tensors are made on the device of
    the model.

    # Parameters

    tokens : `np.ndarray`
        Shape `(batch_size, timesteps)`, int32: the number of each word in the two tables, 0 where there is no word.
    character_ids : `np.ndarray`
        Shape `(n_words + 1, 50)`, int16: the characters of each word, and zeros for no word.
    word_ids : `np.ndarray`
        Shape `(n_words + 1,)`, int32: the number of each word in the vocabulary, and -1 for no word.
    """

    tokens: np.ndarray
    character_ids: np.ndarray
    word_ids: np.ndarray

    @classmethod
    def from_sentences(
        cls, sentences: Sequence[str], vocabulary: Mapping[str, int], unknown_id: int
    ) -> "UniqueWordBatch":
        """
        # Parameters

        sentences : `Sequence[str]`
            Words with a space between them, at least one in each.
        vocabulary : `Mapping[str, int]`
            The number of each word.
        unknown_id : `int`
            The number of words that are not in it.
        """
        words = " ".join(sentences).split(" ")
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words), start=1)}
        # Shape: (batch_size,)
        lengths = np.array([sentence.count(" ") + 1 for sentence in sentences])
        # Shape: (batch_size, timesteps)
        tokens = np.zeros((len(sentences), lengths.max()), dtype=np.int32)
        tokens[np.arange(tokens.shape[1]) < lengths[:, None]] = np.fromiter(
            map(numbers.__getitem__, words), dtype=np.int32, count=len(words)
        )
        # Shape: (n_words + 1, 50)
        character_ids = np.zeros((len(numbers) + 1, MAX_CHARACTERS_PER_TOKEN), dtype=np.int16)
        character_ids[1:] = [word_to_character_ids(word) for word in numbers]
        # Shape: (n_words + 1,)
        word_ids = np.array([NO_WORD_ID, *(vocabulary.get(word, unknown_id) for word in numbers)], dtype=np.int32)
        return cls(tokens, character_ids, word_ids)

    def to_tensors(self, device: torch.device | None) -> dict[str, torch.Tensor]:
        """
        # Parameters

        device : `torch.device`, optional
            The device of the tensors; `None` is the CPU.

        # Returns

        `Dict[str, torch.Tensor]`
            `character_ids`, of shape `(batch_size, timesteps, 50)`, zero where there is no word; and `word_ids`, of
            shape `(batch_size, timesteps)`, -1 where there is no word. Both int64.
        """
        tokens = _on_device(self.tokens, device).long()
        character_ids = _on_device(self.character_ids, device).long()
        word_ids = _on_device(self.word_ids, device).long()
        # `index_select` is several times faster on the CPU than an index of two dimensions.
        flat = tokens.view(-1)
        return {
            "character_ids": character_ids.index_select(0, flat).view(*tokens.shape, -1),
            "word_ids": word_ids.index_select(0, flat).view(tokens.shape),
        }


def _on_device(array: np.ndarray, device: torch.device | None) -> torch.Tensor:
    tensor = torch.from_numpy(array)
    if device is None or device.type != "cuda":
        return tensor.to(device)
    # Only a copy from pinned memory does not wait for the work that the GPU has queued.
    return tensor.pin_memory().to(device, non_blocking=True)
