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
# The id of the process for which torch's number of threads is right: the one that imported this
# module, or a forked one that has called `use_one_thread_after_fork`.
_process_id = os.getpid()


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
    Limits the caches of compiled kernels of oneDNN and torch to 256 kernels each, instead of 1,024,
    unless the environment has other numbers. A biLM on a CPU calls this before its first product.
    oneDNN compiles a kernel of up to half a megabyte for each number of rows: after batches of 1 to
    500 sentences, `small-open` took 3.5 GB without the limit, and 1.3 GB with it. The variables
    stay in the environment, because torch reads them again in each thread.
    """
    for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(variable, "256")


def use_one_thread_after_fork() -> None:
    """
    Sets torch's number of threads to one at the first call in a forked process, which would
    otherwise hang in GNU's OpenMP if its parent has used several threads. `Bilm` calls this when it
    is made and when it runs, and predictors call it before their model runs.
    """
    global _process_id
    if _process_id != os.getpid():
        torch.set_num_threads(1)
        _process_id = os.getpid()
