import os
import subprocess
import sys

import pytest

from elmo_tasks.bilm.process import limit_kernel_caches

SCRIPT = """
import resource
import torch
from elmo_tasks.bilm.process import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        array = torch.ones(2**24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
returned = faults()
keep_freed_memory()
faults()
print(returned, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
@pytest.mark.weekly  # The kernel decides how often a page faults.
def test_freed_memory_is_used_again():
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    returned, kept = map(int, process.stdout.split())
    # Small arrays between large ones may still force glibc to take new memory now and then.
    assert kept < returned / 2


def test_the_limits_of_kernels_leave_what_the_user_has_set(monkeypatch):
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", raising=False)
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "64")
    limit_kernel_caches()
    assert os.environ.pop("ONEDNN_PRIMITIVE_CACHE_CAPACITY") == "256"
    assert os.environ["LRU_CACHE_CAPACITY"] == "64"
