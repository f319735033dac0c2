from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.data import DataLoader, TensorDict

from elmo_tasks.bilm.character_ids import BYTES
from elmo_tasks.data import LmDataLoader, LmReader, LmVocabulary
from elmo_tasks.data.lm_data_loader import batch_tensors

N_SENTENCES = 300


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of 1 to 30 words. Each word is the name of its sentence."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lengths = np.random.default_rng(0).integers(1, 31, N_SENTENCES)
    with open(path, "w", encoding="utf-8") as file:
        for number, length in enumerate(lengths):
            words = [f"s{number}"] * length
            file.write(" ".join(words) + "\n")
    return path


@pytest.fixture(scope="module")
def vocabulary() -> LmVocabulary:
    sentences = (LmReader().text_to_instance([f"s{number}"]) for number in range(N_SENTENCES))
    return LmVocabulary.from_counts(sentences)


@pytest.fixture
def make(path, vocabulary):
    """A function that makes a data loader and indexes it with the vocabulary."""

    def make(**options) -> LmDataLoader:
        defaults = {"max_tokens_per_batch": 100, "buffer_sentences": 80}
        loader = LmDataLoader(LmReader(), path, **{**defaults, **options})
        loader.index_with(vocabulary)
        return loader

    return make


@pytest.fixture
def in_process(monkeypatch):
    """A function that makes this process pretend to be number `rank` of several."""

    def in_process(rank: int, world_size: int) -> None:
        monkeypatch.setattr("elmo_tasks.data.lm_data_loader.is_distributed", lambda: True)
        monkeypatch.setattr(torch.distributed, "get_rank", lambda: rank)
        monkeypatch.setattr(torch.distributed, "get_world_size", lambda: world_size)

    return in_process


def words_of(batches: Iterable[TensorDict]) -> list[list[list[int]]]:
    """The words of each sentence of each batch, without padding."""
    words_of_batches = []
    for batch in batches:
        sentences = [word_ids[word_ids >= 0].tolist() for word_ids in batch["word_ids"]]
        words_of_batches.append(sentences)
    return words_of_batches


def lengths_of(batches: Iterable[TensorDict]) -> list[list[int]]:
    return [list(map(len, sentences)) for sentences in words_of(batches)]


def random_states() -> tuple[list[int], list[int]]:
    """Of the global generators."""
    return np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()


class TestLmDataLoader:
    def test_it_is_registered_and_has_the_sentences_of_the_file(self, path, vocabulary):
        params = Params({"type": "elmo_lm", "max_tokens_per_batch": 10_000, "shuffle": False})
        loader = DataLoader.from_params(params, reader=LmReader(), data_path=str(path))
        loader.index_with(vocabulary)
        (batch,) = loader
        (sentences,) = words_of([batch])
        lines = sorted(path.read_text().splitlines(), key=lambda line: line.count(" "))
        for word_ids, line in zip(sentences, lines, strict=True):
            words = [vocabulary.get_token_from_index(word_id, "lm") for word_id in word_ids]
            assert words == line.split()
        assert batch["words"].numbers.shape == (N_SENTENCES, 30)

    @pytest.mark.parametrize(
        "options", [{}, {"shuffle": False}, {"buffer_sentences": 1}, {"max_tokens_per_batch": 3}]
    )
    def test_every_sentence_is_in_every_epoch_once(self, make, options):
        loader = make(**options)
        for _ in range(2):
            batches = words_of(loader)
            assert len(batches) == len(loader)
            sentences = list(chain.from_iterable(batches))
            assert len(sentences) == N_SENTENCES
            assert len({words[0] for words in sentences}) == N_SENTENCES

    def test_the_budget_holds_and_batches_have_little_padding(self, make):
        n_small = 0
        n_words = 0
        n_words_and_padding = 0
        for lengths in lengths_of(make(buffer_sentences=N_SENTENCES)):
            n_tokens = sum(lengths) + 2 * len(lengths)
            assert n_tokens <= 100
            n_small += n_tokens <= 100 - 32
            n_words += sum(lengths)
            n_words_and_padding += len(lengths) * max(lengths)
        assert n_small <= 1
        assert n_words_and_padding < 1.1 * n_words

    def test_without_shuffling_each_buffer_goes_from_short_to_long(self, make):
        loader = make(shuffle=False, buffer_sentences=N_SENTENCES)
        lengths = list(chain.from_iterable(lengths_of(loader)))
        assert lengths == sorted(lengths)

    def test_the_order_depends_only_on_seed_and_epoch(self, make):
        loader = make()
        first_epoch = words_of(loader)
        assert words_of(loader) != first_epoch
        states = random_states()
        assert words_of(make()) == first_epoch
        assert words_of(make(seed=1)) != first_epoch
        assert random_states() == states

    def test_a_recovered_run_gets_the_same_batches(self, make):
        """
        As in AllenNLP's recovery, the first epoch stops in the middle, and a new loader starts it
        again.
        """
        undisturbed = make()
        expected = [words_of(undisturbed) for _ in range(3)]
        assert words_of(islice(iter(make()), 3)) == expected[0][:3]
        recovered = make()
        assert [words_of(recovered) for _ in range(3)] == expected

    @pytest.mark.parametrize("world_size", [2, 3])
    def test_processes_share_the_batches_of_one(self, make, in_process, world_size):
        """The batches of one process are dealt out in turn, without an incomplete last group."""
        batches = words_of(make())
        n_groups = len(batches) // world_size
        for rank in range(world_size):
            in_process(rank, world_size)
            loader = make()
            assert len(loader) == n_groups
            assert words_of(loader) == batches[rank : n_groups * world_size : world_size]


def test_tensors_have_the_characters_of_the_bilm_and_the_words_of_the_vocabulary():
    sentences = ["the cat saw the dog", "Ça va", "<S> the", "x" * 60]
    vocabulary = {"<S>": 0, "</S>": 1, "<UNK>": 2, "the": 3, "dog": 4, "va": 5}
    tensors = batch_tensors(sentences, vocabulary)
    words = tensors["words"]
    split_sentences = [sentence.split() for sentence in sentences]
    character_ids = BYTES.batch(split_sentences).numpy()
    for row, sentence in enumerate(split_sentences):
        numbers = words.numbers[row]
        numbers = numbers[numbers >= 0]
        assert [words.words[number] for number in numbers] == sentence
        assert np.array_equal(words.rows[numbers], character_ids[row, : len(sentence)])
    expected = [[3, 2, 2, 3, 4], [2, 5, -1, -1, -1], [0, 3, -1, -1, -1], [2, -1, -1, -1, -1]]
    assert tensors["word_ids"].tolist() == expected
