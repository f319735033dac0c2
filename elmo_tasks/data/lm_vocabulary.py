"""The vocabulary of a biLM: the words that it learns to predict."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Optional

from allennlp.common.checks import ConfigurationError
from allennlp.common.file_utils import cached_path
from allennlp.common.tqdm import Tqdm
from allennlp.data import Instance, Vocabulary
from allennlp.data.vocabulary import DEFAULT_NON_PADDED_NAMESPACES

from elmo_tasks.bilm.softmax.word_list import WordList

__all__ = ["LM_NAMESPACE", "NO_WORD_ID", "LmVocabulary"]

logger = logging.getLogger(__name__)

LM_NAMESPACE = "lm"
"""Namespace of the words in a vocabulary."""

NO_WORD_ID = -1
"""Value of `word_ids` where there is no word."""


@Vocabulary.register("elmo_lm", constructor="from_counts")
@Vocabulary.register("elmo_lm_from_file", constructor="from_word_list")
class LmVocabulary(Vocabulary):
    """
    A vocabulary with the words of a language model in its namespace "lm", numbered as in bilm-tf:
    from 0, including `<S>`, `</S>` and `<UNK>`, and without AllenNLP's padding and unknown tokens.
    """

    @classmethod
    def from_counts(
        cls, instances: Iterable[Instance], min_count: int = 1, max_words: Optional[int] = None
    ) -> "LmVocabulary":
        """
        `<S>`, `</S>`, `<UNK>`, then the words of a text from the most frequent to the rarest,
        because the sampled softmax takes the number of a word as its rank (section 3.1). Equally
        frequent words are in alphabetical order. Words with fewer than `min_count` occurrences are
        dropped; `max_words` counts the three special words, too.

        The instances come from an `LmReader`. In a config, `datasets_for_vocab_creation: ['train']`
        selects the training text.
        """
        counts: Counter[str] = Counter()
        for instance in Tqdm.tqdm(instances, desc="counting words", unit=" sentences"):
            # Several times faster than `count_vocab_items`, which adds to a plain dictionary.
            counts.update(instance["words"].metadata)
        words = WordList.from_counts(counts, max_words=max_words, min_count=min_count).words
        if len(words) <= 3:
            expected = f"words that occur {min_count} times"
            raise ConfigurationError(f"expected {expected}, got none of {len(counts)}")
        return cls._from_words(words)

    @classmethod
    def from_word_list(cls, path: str) -> "LmVocabulary":
        """
        The words of a file with one word per line, see
        `elmo_tasks.bilm.softmax.word_list.WordList`.
        """
        return cls._from_words(WordList.from_file(cached_path(path)).words)

    @classmethod
    def _from_words(cls, words: Sequence[str]) -> "LmVocabulary":
        return cls(
            tokens_to_add={LM_NAMESPACE: list(words)},
            non_padded_namespaces=[LM_NAMESPACE, *DEFAULT_NON_PADDED_NAMESPACES],
        )
