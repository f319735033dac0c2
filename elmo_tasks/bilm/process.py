"""Memory that is freed and needed again in every step of a training."""

import ctypes
import sys

__all__ = ["keep_freed_memory"]

# From glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4


def keep_freed_memory() -> None:
    """
    Makes this process keep the memory that it frees, for its next arrays. By default, glibc returns large arrays to the
    kernel, which clears their pages again at the next step. No effect on other C libraries.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_M_MMAP_MAX, 0)
        mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
