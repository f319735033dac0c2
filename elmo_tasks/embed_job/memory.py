"""The memory of a long job: oneDNN's kernels and the free pages of the heap are bounded."""

import ctypes
import os

__all__ = ["bound_kernels", "return_free_memory"]

# A kernel for each number of rows that a product meets takes up to half a megabyte; oneDNN keeps 1,024 by default. A
# batch needs some tens at a time, and another takes a millisecond.
_CAPACITY, _KERNELS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", 128


def bound_kernels() -> None:
    """
    Lets oneDNN keep few kernels in this process, unless the environment says how many. It has an effect before the
    first product of the process alone.
    """
    os.environ.setdefault(_CAPACITY, str(_KERNELS))


def return_free_memory() -> None:
    """
    Gives pages that are free to the system, where the C library can. Products of all sizes leave holes between the
    vectors and kernels that stay, and glibc by itself returns only what is at the end of the heap.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
