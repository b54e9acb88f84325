"""Memory that a worker process keeps: the next client's vectors take the last one's pages."""

from __future__ import annotations

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, MMAP_MAX = -1, -4
MOST = (1 << 31) - 1


def keep_pages() -> None:
    """Where the C library is glibc, free memory stays with this process until it ends.

    Otherwise every vector is made of new pages, which the system clears one by one: up to half of
    the time that a small client takes.
    """
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(MMAP_MAX, 0)
        library.mallopt(TRIM_THRESHOLD, MOST)
