"""The likelihood of sentences under a biLM with its softmax, and the perplexity of a text."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, islice
from os import PathLike
from typing import NamedTuple

import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.precision import Precision
from elmo_tasks.bilm.softmax.lm_softmax import LmSoftmax
from elmo_tasks.bilm.softmax.word_list import UNKNOWN_WORD, WordList, warn_of_unknown
from elmo_tasks.bilm.weights import read_softmax
from elmo_tasks.vectors.batching import chunks, compute_by_length
from elmo_tasks.vectors.devices import Device, device_of
from elmo_tasks.vectors.pretrained import pretrained_files

__all__ = ["LanguageModel", "SentenceLikelihood", "summary"]

# Includes padding and boundaries. Sentences of one batch have similar lengths, so each product has
# many rows.
_BATCH_WORDS = 16384


class SentenceLikelihood(NamedTuple):
    """
    A sentence and its log-likelihood in nats in each direction, including the boundary where the
    direction ends. `n_unknown` of its words are not in the vocabulary, and are scored as `<UNK>`.
    """

    words: list[str]
    forward: float
    backward: float
    n_unknown: int


class LanguageModel:
    """
    A biLM in the public format, given by name or folder. It needs `vocab.txt` and a softmax in the
    weight file, as `allennlp elmo-export` writes them.
    """

    def __init__(
        self, bilm: str | PathLike[str], *, device: Device = None, precision: Precision = "float32"
    ) -> None:
        place = device_of(device)
        options_file, weight_file = pretrained_files(bilm)
        self.files = options_file, weight_file, options_file.with_name("vocab.txt")
        self._bilm = (
            Bilm.from_files(options_file, weight_file, precision=precision)
            .requires_grad_(False)
            .to(place)
        )
        self._words = WordList.from_file(self.files[2])
        softmax = read_softmax(weight_file, self._bilm.options)
        if softmax is None or len(softmax["weight"]) != len(self._words):
            raise ValueError(
                f"expected a softmax over the {len(self._words)} words of vocab.txt: {weight_file}"
            )
        self._softmax = (
            LmSoftmax(len(self._words), self._bilm.options.projection_dim)
            .requires_grad_(False)
            .to(place)
        )
        self._softmax.load_state_dict(softmax)

    def score(self, sentences: Iterable[list[str]]) -> Iterator[SentenceLikelihood]:
        """Scores sentences in their order. At most about 32,000 words are read ahead."""
        for chunk in chunks(sentences, _BATCH_WORDS // 4):
            scores: dict[int, SentenceLikelihood] = {}
            for rows, of_rows in compute_by_length(
                partial(self._score, chunk), chunk, _BATCH_WORDS, "a batch"
            ):
                scores.update(zip(rows, of_rows, strict=True))
            yield from (scores[row] for row in range(len(chunk)))

    def _score(self, chunk: list[list[str]], rows: list[int]) -> list[SentenceLikelihood]:
        batch = [chunk[row] for row in rows]
        numbers = self._words.indices([*chain.from_iterable(batch), "<S>", "</S>", UNKNOWN_WORD])
        contexts = self._bilm.contexts(batch)
        # Shape: (2, n_predictions)
        targets = torch.tensor(numbers, device=contexts.targets.device)[contexts.targets]
        likelihood = torch.stack(list(map(self._softmax.log_likelihood, contexts.hidden, targets)))
        # Shape: (2, batch_size)
        of_sentences = likelihood.new_zeros(2, len(batch)).index_add_(1, contexts.rows, likelihood)
        words, scores = iter(numbers), []
        for sentence, (forward, backward) in zip(batch, of_sentences.T.tolist(), strict=True):
            n_unknown = list(islice(words, len(sentence))).count(numbers[-1])
            scores.append(SentenceLikelihood(sentence, forward, backward, n_unknown))
        return scores


def summary(scores: Iterable[SentenceLikelihood]) -> dict[str, float]:
    """
    `forward_perplexity`, `backward_perplexity`, their mean `perplexity`, `unknown_share` (of the
    words), and the numbers of `sentences` and `words`.
    """
    forward = backward = 0.0
    n_sentences = n_words = n_unknown = 0
    for score in scores:
        forward, backward = forward - score.forward, backward - score.backward
        n_sentences, n_words, n_unknown = (
            n_sentences + 1,
            n_words + len(score.words),
            n_unknown + score.n_unknown,
        )
    warn_of_unknown(n_unknown, n_words)
    # Each sentence has one prediction per word, and one for its end.
    nats = torch.tensor([forward, backward], dtype=torch.float64) / max(1, n_words + n_sentences)
    forward, backward = nats.exp().tolist()
    return {
        "forward_perplexity": forward,
        "backward_perplexity": backward,
        "perplexity": (forward + backward) / 2,
        "unknown_share": n_unknown / max(1, n_words),
        "sentences": n_sentences,
        "words": n_words,
    }
