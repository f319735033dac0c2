"""Dataset reader of text for a language model."""

import os
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.fields import ArrayField, Field

from elmo_tasks.bilm.characters import MAX_CHARACTERS_PER_TOKEN, word_to_character_ids
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD
from elmo_tasks.data.lm_text import MAX_WORDS, LmText
from elmo_tasks.data.lm_vocabulary import LM_NAMESPACE, NO_WORD_ID

__all__ = ["LmReader"]


@DatasetReader.register("elmo_lm")
class LmReader(DatasetReader):
    """
    Reads files with one tokenised sentence per line. Its instances serve the vocabulary and predictions; the data
    loader "elmo_lm" makes the same tensors without them.

    # Parameters

    errors, max_words, long_lines, nfc :
        See `LmText`.
    """

    def __init__(
        self,
        *,
        errors: Literal["strict", "replace"] = "strict",
        max_words: int = MAX_WORDS,
        long_lines: Literal["split", "skip"] = "split",
        nfc: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(manual_distributed_sharding=True, manual_multiprocess_sharding=True, **kwargs)
        self._options: dict[str, Any] = {"errors": errors, "max_words": max_words, "long_lines": long_lines, "nfc": nfc}

    def text(self, path: str | os.PathLike[str]) -> LmText:
        """The sentences of a file, a folder or a pattern."""
        return LmText(path, **self._options)

    def _read(self, file_path: str) -> Iterator[Instance]:
        return map(self.text_to_instance, self.shard_iterable(self.text(file_path)))

    def text_to_instance(self, words: Sequence[str]) -> Instance:
        """`word_ids`; `apply_token_indexers` adds `character_ids`, which a vocabulary does not need."""
        return Instance({"word_ids": _WordsField(words)})

    def apply_token_indexers(self, instance: Instance) -> None:
        rows = np.array([word_to_character_ids(word) for word in instance["word_ids"].words], dtype=np.int64)
        rows = rows.reshape(-1, MAX_CHARACTERS_PER_TOKEN)
        instance.add_field("character_ids", ArrayField(rows, padding_value=0, dtype=rows.dtype))


class _WordsField(Field[torch.Tensor]):
    """Words as numbers in the vocabulary of the language model, with its own word for unknown ones."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._ids: list[int] = []

    def index(self, vocab: Vocabulary) -> None:
        vocabulary = vocab.get_token_to_index_vocabulary(LM_NAMESPACE)
        self._ids = [vocabulary.get(word, vocabulary[UNKNOWN_WORD]) for word in self.words]

    def get_padding_lengths(self) -> dict[str, int]:
        return {"n_words": len(self.words)}

    def as_tensor(self, padding_lengths: dict[str, int]) -> torch.Tensor:
        # Shape: (timesteps,)
        tensor = torch.full((padding_lengths["n_words"],), NO_WORD_ID)
        tensor[: len(self._ids)] = torch.tensor(self._ids)
        return tensor
