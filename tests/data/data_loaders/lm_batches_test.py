from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from elmo_tasks.data import LmText
from elmo_tasks.data.data_loaders.lm_batches import LmBatches

N_SENTENCES = 500


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> LmText:
    """Sentences of 1 to 30 words, in which each word says the sentence."""
    path: Path = tmp_path_factory.mktemp("text") / "text.txt"
    lengths = np.random.default_rng(0).integers(1, 31, N_SENTENCES)
    path.write_text("".join(" ".join([f"s{number}"] * length) + "\n" for number, length in enumerate(lengths)))
    return LmText(path)


def batches(text: LmText, **options) -> LmBatches:
    return LmBatches(text, **{"max_tokens": 100, "buffer_sentences": 120, "shuffle": True, "seed": 0, **options})


class TestLmBatches:
    @pytest.mark.parametrize("shuffle", [True, False])
    @pytest.mark.parametrize("buffer_sentences", [1, 120, 500, 10_000])
    def test_every_sentence_is_there_once_in_every_epoch(self, text, shuffle, buffer_sentences):
        """Oracle: the sentences of the text."""
        some = batches(text, shuffle=shuffle, buffer_sentences=buffer_sentences)
        for epoch in range(2):
            assert Counter(chain.from_iterable(some.of_epoch(epoch))) == Counter(map(" ".join, text))

    def test_the_budget_holds_and_is_used(self, text):
        """Oracle: sums of words and two boundaries; a batch that is not the last of its buffer has no room for more."""
        sizes = [sum(s.count(" ") + 3 for s in batch) for batch in batches(text, buffer_sentences=500).of_epoch(0)]
        assert max(sizes) <= 100
        assert sum(size <= 100 - 32 for size in sizes) <= 1

    def test_a_sentence_over_the_budget_is_a_batch(self, text):
        """Oracle: a budget that no two sentences fit in."""
        assert {len(batch) for batch in batches(text, max_tokens=3).of_epoch(0)} == {1}

    def test_sentences_of_a_batch_have_about_the_same_length(self, text):
        """Oracle: padding in batches of neighbours by length, against batches in the order of the text."""
        lengths = [[s.count(" ") + 1 for s in batch] for batch in batches(text, buffer_sentences=500).of_epoch(0)]
        padded = sum(len(batch) * max(batch) for batch in lengths)
        assert padded < 1.1 * sum(map(sum, lengths))

    def test_count_is_the_number_of_batches_of_any_epoch(self, text):
        """Oracle: their number."""
        for options in ({}, {"buffer_sentences": 77}, {"max_tokens": 40}, {"shuffle": False}):
            some = batches(text, **options)
            assert [len(list(some.of_epoch(epoch))) for epoch in range(3)] == [some.count()] * 3

    @pytest.mark.parametrize("n_processes", [1, 2, 3, 7, 60, 400])
    def test_processes_evaluate_the_whole_text(self, text, n_processes):
        """Oracle: the sentences of the text; a batch for each process, in the budget and a sentence at most."""
        some = batches(text, shuffle=False)
        groups = list(some.groups_of_epoch(0, n_processes))
        assert {len(group) for group in groups} == {n_processes} and len(groups) == some.count(n_processes)
        dealt = list(chain.from_iterable(groups))
        assert sorted(chain.from_iterable(dealt)) == sorted(map(" ".join, text))
        assert all(sum(s.count(" ") + 3 for s in batch) <= 100 + 32 for batch in dealt)

    def test_processes_train_on_full_batches(self, text):
        """Oracle: the batches of one process, without an incomplete last group."""
        some = batches(text)
        every = list(some.of_epoch(1))
        groups = list(some.groups_of_epoch(1, 7))
        assert groups == [every[first : first + 7] for first in range(0, len(every) // 7 * 7, 7)]
        assert len(groups) == some.count(7)

    @pytest.mark.parametrize(
        ("n_processes", "expected"),
        [
            (2, [[["a"], ["b b", "c c c"]]]),
            (3, [[["a"], ["b b"], ["c c c"]]]),
            (4, []),
        ],
    )
    def test_a_text_of_one_batch_is_cut(self, tmp_path, n_processes, expected):
        """Oracle: by hand; with fewer sentences than processes there is nothing for some of them."""
        (tmp_path / "text.txt").write_text("c c c\na\nb b\n")
        some = batches(LmText(tmp_path / "text.txt"), shuffle=False)
        groups = list(some.groups_of_epoch(0, n_processes))
        assert groups == expected
        assert some.count(n_processes) == len(expected)

    def test_the_last_sentences_go_to_the_batches_before(self, tmp_path):
        """Oracle: by hand: a sentence is a batch, and the third of them goes to one of two processes."""
        (tmp_path / "text.txt").write_text("a a\nb b\nc c\n")
        some = batches(LmText(tmp_path / "text.txt"), shuffle=False, max_tokens=4)
        assert list(some.groups_of_epoch(0, 2)) == [[["a a", "c c"], ["b b"]]]
        assert some.count(2) == 1

    def test_the_order_depends_on_seed_and_epoch_alone(self, text):
        """Oracle: the same order after NumPy's global generator was used, and another with another seed or epoch."""
        first = list(batches(text).of_epoch(1))
        np.random.seed(3)
        assert list(batches(text).of_epoch(1)) == first
        assert list(batches(text).of_epoch(2)) != first
        assert list(batches(text, seed=1).of_epoch(1)) != first

    def test_epochs_put_other_sentences_together(self, text):
        """Oracle: only a few batches of more than one sentence are the same in two epochs, where a buffer is large."""
        some = batches(text, buffer_sentences=500)
        first, second = ({frozenset(batch) for batch in some.of_epoch(n) if len(batch) > 1} for n in range(2))
        assert len(first & second) < len(first) / 5

    def test_without_shuffling_each_buffer_goes_from_short_to_long(self, text):
        """Oracle: lengths sorted by NumPy, and the order of the text within a length."""
        (buffer,) = [list(chain.from_iterable(batches(text, shuffle=False, buffer_sentences=500).of_epoch(0)))]
        assert buffer == sorted(map(" ".join, text), key=lambda sentence: sentence.count(" "))
