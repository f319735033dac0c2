"""The likelihood of sentences under a biLM with its softmax, and the perplexity of a text."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
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
        torch_device = device_of(device)
        options_file, weight_file = pretrained_files(bilm)
        vocabulary_file = options_file.with_name("vocab.txt")
        self.files = (options_file, weight_file, vocabulary_file)
        self._bilm = Bilm.from_files(options_file, weight_file, precision=precision)
        self._bilm.requires_grad_(False).to(torch_device)
        self._words = WordList.from_file(vocabulary_file)
        n_words = len(self._words)
        softmax = read_softmax(weight_file, self._bilm.options)
        if softmax is None or len(softmax["weight"]) != n_words:
            raise ValueError(
                f"expected a softmax over the {n_words} words of vocab.txt: {weight_file}"
            )
        self._softmax = LmSoftmax(n_words, self._bilm.options.projection_dim)
        self._softmax.requires_grad_(False).to(torch_device)
        self._softmax.load_state_dict(softmax)

    def score(self, sentences: Iterable[list[str]]) -> Iterator[SentenceLikelihood]:
        """Scores sentences in their order. At most about 32,000 words are read ahead."""
        for chunk in chunks(sentences, _BATCH_WORDS // 4):
            score_rows = partial(self._score_rows, chunk)
            scores: dict[int, SentenceLikelihood] = {}
            for rows, row_scores in compute_by_length(score_rows, chunk, _BATCH_WORDS, "a batch"):
                scores.update(zip(rows, row_scores, strict=True))
            for row in range(len(chunk)):
                yield scores[row]

    def _score_rows(self, chunk: list[list[str]], rows: list[int]) -> list[SentenceLikelihood]:
        """Scores one batch: some sentences of a chunk."""
        batch = [chunk[row] for row in rows]
        batch_words = list(chain.from_iterable(batch))
        numbers = self._words.indices([*batch_words, "<S>", "</S>", UNKNOWN_WORD])
        contexts = self._bilm.contexts(batch)
        # Shape: (2, n_predictions)
        targets = torch.tensor(numbers, device=contexts.targets.device)[contexts.targets]
        word_likelihoods = torch.stack(
            [
                self._softmax.log_likelihood(hidden, direction_targets)
                for hidden, direction_targets in zip(contexts.hidden, targets, strict=True)
            ]
        )
        # Shape: (2, batch_size)
        likelihoods = word_likelihoods.new_zeros(2, len(batch))
        likelihoods.index_add_(1, contexts.rows, word_likelihoods)
        forward, backward = likelihoods.tolist()
        unknown = numbers[-1]
        scores = []
        start = 0
        for row, sentence in enumerate(batch):
            end = start + len(sentence)
            n_unknown = numbers[start:end].count(unknown)
            scores.append(SentenceLikelihood(sentence, forward[row], backward[row], n_unknown))
            start = end
        return scores


def summary(scores: Iterable[SentenceLikelihood]) -> dict[str, float]:
    """
    `forward_perplexity`, `backward_perplexity`, their mean `perplexity`, `unknown_share` (of the
    words), and the numbers of `sentences` and `words`.
    """
    forward_nats = backward_nats = 0.0
    n_sentences = n_words = n_unknown = 0
    for score in scores:
        forward_nats -= score.forward
        backward_nats -= score.backward
        n_sentences += 1
        n_words += len(score.words)
        n_unknown += score.n_unknown
    warn_of_unknown(n_unknown, n_words)
    # Each sentence has one prediction per word, and one for its end.
    n_predictions = max(1, n_words + n_sentences)
    # Overflows to infinity, unlike `math.exp`.
    nats = torch.tensor([forward_nats, backward_nats], dtype=torch.float64) / n_predictions
    forward_perplexity, backward_perplexity = nats.exp().tolist()
    return {
        "forward_perplexity": forward_perplexity,
        "backward_perplexity": backward_perplexity,
        "perplexity": (forward_perplexity + backward_perplexity) / 2,
        "unknown_share": n_unknown / max(1, n_words),
        "sentences": n_sentences,
        "words": n_words,
    }
