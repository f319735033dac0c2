import ctypes
import os
from pathlib import Path

import pytest

from elmo_tasks.embed_job import EmbedOptions
from elmo_tasks.embed_job.memory import return_free_memory
from elmo_tasks.embed_job.part_worker import load_elmo


class TestBoundKernels:
    @pytest.mark.parametrize(("before", "after"), [(None, "128"), ("7", "7")])
    def test_a_worker_keeps_few_kernels_unless_the_user_says_how_many(self, tiny_bilm, monkeypatch, before, after):
        """Oracle: the variable that oneDNN reads at its first product, by hand."""
        name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
        # Restored afterwards, too, if it was not set.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name) if before is None else monkeypatch.setenv(name, before)
        load_elmo(EmbedOptions(tiny_bilm))
        assert os.environ[name] == after


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
class TestReturnFreeMemory:
    def test_pages_between_what_stays_are_given_back(self):
        """Oracle: the resident pages of this process, as Linux counts them: most of 64 MB that are free."""
        blocks = [bytearray(16_000) for _ in range(4000)]
        end = bytearray(16_000)
        blocks.clear()
        before = resident_bytes()
        return_free_memory()
        assert before - resident_bytes() > 32e6
        assert len(end) == 16_000


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
