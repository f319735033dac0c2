import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DataLoader, Vocabulary

from elmo_tasks.data import LmDataLoader, LmReader, LmVocabulary, NerReader
from elmo_tasks.data.data_loaders import lm_data_loader

N_SENTENCES = 300


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of 1 to 30 words, in which each word says the sentence."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lengths = np.random.default_rng(0).integers(1, 31, N_SENTENCES)
    path.write_text("".join(" ".join([f"s{number}"] * length) + "\n" for number, length in enumerate(lengths)))
    return path


@pytest.fixture(scope="module")
def vocabulary() -> LmVocabulary:
    sentences = (LmReader().text_to_instance([f"s{number}"]) for number in range(N_SENTENCES))
    return LmVocabulary.from_counts(sentences)


@pytest.fixture
def make(path, vocabulary):
    """A function that makes a data loader with its vocabulary."""

    def make(**options) -> LmDataLoader:
        defaults = {"max_tokens_per_batch": 100, "buffer_sentences": 80}
        loader = LmDataLoader(LmReader(max_words=30), path, **{**defaults, **options})
        loader.index_with(vocabulary)
        return loader

    return make


@pytest.fixture
def in_process(monkeypatch):
    """A function that makes this process number `rank` of several."""

    def in_process(rank: int, world_size: int) -> None:
        monkeypatch.setattr(lm_data_loader, "_rank_and_world_size", lambda: (rank, world_size))

    return in_process


def words_of(batches) -> list[list[list[int]]]:
    """Batches as lists, for comparisons."""
    return [batch["word_ids"].tolist() for batch in batches]


class TestLmDataLoader:
    def test_it_is_registered_and_gets_what_allennlp_train_gives_it(self, path, vocabulary):
        """Oracle: the lines of the file, and their numbers in the vocabulary."""
        params = Params({"type": "elmo_lm", "max_tokens_per_batch": 10_000, "shuffle": False})
        loader = DataLoader.from_params(params, reader=LmReader(), data_path=str(path))
        loader.index_with(vocabulary)
        (batch,) = loader
        lines = sorted(path.read_text().splitlines(), key=lambda line: line.count(" "))
        expected = [[vocabulary.get_token_index(word, "lm") for word in line.split()] for line in lines]
        assert [row[row >= 0].tolist() for row in batch["word_ids"]] == expected
        assert batch["character_ids"].shape == (N_SENTENCES, 30, 50)
        assert torch.equal(batch["character_ids"].gt(0).all(-1), batch["word_ids"].ge(0))

    def test_len_is_the_number_of_batches(self, make):
        """Oracle: their number in two epochs."""
        loader = make()
        assert [len(list(loader)) for _ in range(2)] == [len(loader)] * 2

    @pytest.mark.parametrize("num_workers", [1, 2, 3])
    def test_the_number_of_workers_changes_nothing(self, make, num_workers):
        """Oracle: the batches made without workers, of two epochs."""
        ours, expected = make(num_workers=num_workers), make()
        for _ in range(2):
            assert words_of(ours) == words_of(expected)

    def test_global_random_generators_change_nothing_and_are_not_changed(self, make):
        """Oracle: the batches with other seeds of the generators, and their states before and after."""
        expected = words_of(make())
        random.seed(1), np.random.seed(1), torch.manual_seed(1)
        before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
        assert words_of(make()) == expected
        assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before

    def test_epochs_differ_unless_nothing_is_shuffled(self, make):
        """Oracle: the first epoch."""
        for shuffle in (True, False):
            loader = make(shuffle=shuffle)
            assert (words_of(loader) == words_of(loader)) != shuffle

    @pytest.mark.parametrize("batches_per_epoch", [None, 7])
    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_skipping_batches_resumes_with_the_others(self, make, batches_per_epoch, num_workers):
        """Oracle: the batches of a loader that was not interrupted. The first epoch is left in the middle and started
        again by a new loader, with another number of workers, as AllenNLP recovers."""
        undisturbed = make(batches_per_epoch=batches_per_epoch)
        expected = [words_of(undisturbed) for _ in range(3)]
        killed = make(batches_per_epoch=batches_per_epoch)
        assert words_of(islice(iter(killed), 3)) == expected[0][:3]
        recovered = make(batches_per_epoch=batches_per_epoch, num_workers=num_workers)
        assert [words_of(recovered) for _ in range(3)] == expected

    def test_epochs_of_a_number_of_batches_continue_where_the_last_ended(self, make):
        """Oracle: the batches of two epochs of the text, one after the other."""
        whole, parts = make(), make(batches_per_epoch=7)
        expected = words_of(whole) + words_of(whole)
        assert len(parts) == 7
        actual = [batch for _ in range(len(expected) // 7) for batch in words_of(parts)]
        assert actual == expected[: len(actual)]
        assert len(actual) > len(whole)

    @pytest.mark.parametrize("num_workers", [0, 2])
    @pytest.mark.parametrize("world_size", [2, 3])
    def test_processes_share_the_batches_of_one(self, make, in_process, world_size, num_workers):
        """Oracle: the batches of one process, dealt out in turn, without an incomplete last group."""
        every = words_of(make())
        n = len(every) // world_size
        for rank in range(world_size):
            in_process(rank, world_size)
            loader = make(num_workers=num_workers)
            assert len(loader) == n
            assert words_of(loader) == every[rank : n * world_size : world_size]

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_processes_evaluate_the_whole_text(self, make, in_process, num_workers):
        """Oracle: the words of the batches of one process."""

        def numbers(batches) -> list[int]:
            return [number for batch in words_of(batches) for row in batch for number in row if number >= 0]

        every, shares = numbers(make(shuffle=False)), []
        for rank in range(5):
            in_process(rank, 5)
            loader = make(shuffle=False, num_workers=num_workers)
            batches = list(loader)
            assert len(batches) == len(loader)
            shares += numbers(batches)
        assert sorted(shares) == sorted(every)

    def test_fewer_batches_than_processes_are_an_error(self, make, in_process):
        """Oracle: the message; without it an epoch of a number of batches would never end."""
        in_process(0, 1000)
        with pytest.raises(ValueError, match="a batch for each of the 1000 processes"):
            list(make(batches_per_epoch=2))
        for shuffle in (True, False):
            with pytest.raises(ValueError, match="a batch for each of the 1000 processes"):
                len(make(shuffle=shuffle))

    @pytest.mark.parametrize("num_workers", [0, 2])
    def test_bad_text_is_an_error_with_file_and_line(self, tmp_path, vocabulary, num_workers):
        """Oracle: by hand."""
        (tmp_path / "text.txt").write_bytes(b"a\nb\n\xff\n")
        loader = LmDataLoader(LmReader(), tmp_path / "text.txt", max_tokens_per_batch=300, num_workers=num_workers)
        loader.index_with(vocabulary)
        with pytest.raises(ValueError, match=r"text.txt, line 3: .* UTF-8"):
            list(loader)

    @pytest.mark.parametrize(
        ("option", "value"),
        [("max_tokens_per_batch", 31), ("buffer_sentences", 0), ("num_workers", -1), ("seed", -1)]
        + [("batches_per_epoch", 0)],
    )
    def test_options_out_of_range_are_refused(self, make, option, value):
        """Oracle: the message names the option and the value."""
        with pytest.raises(ConfigurationError, match=f"{option} must be at least .*, but is {value}"):
            make(**{option: value})

    def test_parts_that_do_not_fit_are_refused(self, make, path):
        """Oracle: the messages."""
        with pytest.raises(ConfigurationError, match="type 'elmo_lm', but has a NerReader"):
            LmDataLoader(NerReader(), path, max_tokens_per_batch=100)
        with pytest.raises(ConfigurationError, match="set the vocabulary of the config to type 'elmo_lm'"):
            make().index_with(Vocabulary())
        with pytest.raises(ValueError, match="call index_with"):
            list(LmDataLoader(LmReader(), path, max_tokens_per_batch=300))
