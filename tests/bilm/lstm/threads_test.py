"""Tests of elmo_tasks.bilm.lstm.threads."""

import threading

import pytest
import torch

from elmo_tasks.bilm import Bilm
from elmo_tasks.bilm.lstm import threads
from elmo_tasks.bilm.lstm.threads import threads_for
from tests.paths import TINY_BILM, bilm_files


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class TestThreadsFor:
    def test_small_products_have_one_thread_and_large_ones_all(self, two_threads):
        """Oracle: torch's number of threads, within the block and after it."""
        for n_multiply_adds, expected in ((1, 1), (2**22, 1), (2**22 + 1, 2)):
            with threads_for(n_multiply_adds):
                assert torch.get_num_threads() == expected
            assert torch.get_num_threads() == 2

    def test_the_number_comes_back_after_an_error(self, two_threads):
        """Oracle: torch's number of threads."""
        with pytest.raises(KeyError), threads_for(1):
            raise KeyError
        assert torch.get_num_threads() == 2

    @pytest.mark.parametrize("n_multiply_adds", [1, 2**30])
    def test_a_thread_that_begins_meanwhile_has_all_threads_later(self, two_threads, n_multiply_adds):
        """Oracle: torch's number of threads in the other thread, after its own block; torch alone would give it one."""
        found = []

        def other():
            with threads_for(n_multiply_adds):
                found.append(torch.get_num_threads())
            found.append(torch.get_num_threads())

        thread = threading.Thread(target=other)
        with threads_for(1):
            thread.start()
            thread.join()
        assert found == [1 if n_multiply_adds == 1 else 2, 2]
        assert torch.get_num_threads() == 2

    def test_the_bilm_computes_one_sentence_with_one_thread(self, two_threads, monkeypatch):
        """Oracle: the number of threads while the character encoder runs, for one sentence and for many."""
        bilm = Bilm.from_files(*bilm_files(TINY_BILM)).requires_grad_(False)
        found = []
        bilm.character_encoder.register_forward_pre_hook(lambda *_: found.append(torch.get_num_threads()))
        with torch.no_grad():
            bilm([["a"]])
            options = bilm.options
            monkeypatch.setattr(threads, "_ENOUGH_FOR_TWO", 2 * 2 * options.projection_dim * 4 * options.cell_dim)
            bilm([["a"]] * 3)
            bilm.contexts([["a"]] * 3)
        assert found == [1, 2, 2] and torch.get_num_threads() == 2
