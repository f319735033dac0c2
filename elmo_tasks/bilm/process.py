"""
Settings of the whole process. Commands may change them, classes may not, with two exceptions,
without which a program that uses a biLM would hang or fill its memory.
"""

import ctypes
import os
import sys

import torch

__all__ = ["keep_freed_memory", "limit_kernel_caches", "use_one_thread_after_fork"]

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
# The process that has imported this module; of a forked process that has used a biLM, its own.
_process = os.getpid()


def keep_freed_memory() -> None:
    """
    For commands that train a biLM: this process keeps the memory that it frees, for its next
    arrays. By default, glibc returns large arrays to the kernel, which clears their pages again at
    the next step. No effect on other C libraries.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def limit_kernel_caches() -> None:
    """
    What a biLM on a CPU calls before its first product: oneDNN and torch keep 256 compiled kernels
    each, instead of 1,024, if the environment has no other numbers. oneDNN compiles one of up to
    half a megabyte for each number of rows: after batches of 1 to 500 sentences, `small-open` took
    3.5 GB without the limit, and 1.3 GB with it. The variables stay in the environment, because
    torch reads them again in each thread.
    """
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, "256")


def use_one_thread_after_fork() -> None:
    """
    What `Bilm` calls when it is made and when it runs, and predictors before their model runs: the
    first call in a forked process sets torch's number of threads to one. Otherwise, the process
    would hang in GNU's OpenMP if its parent has used several threads.
    """
    global _process
    if _process != os.getpid():
        torch.set_num_threads(1)
        _process = os.getpid()
