"""Settings of the interpreter and of the kernel for a process that does nothing but serve a store.

Only the program that owns its process may make them: the server, its feed worker, the demo and the
benchmarks, never the embedded API.

*Collector.* A full collection walks every object of every library: 47 ms with ours, in which no
commit goes on. What was there when the node had started lives as long as the process, and most of
what a collection has seen to live lives on, so that it need not be walked
(`kvlayer.process.collector`).

*Switch interval.* A long group goes from the loop to the log's thread and back, and each time that
thread returns from a system call it needs the interpreter's lock. A loop that is busy (an export,
a backfill) gives it up only on demand, which a waiting thread makes after this interval. Beside a
loop working in steps of a millisecond, write and sync took 3.1 ms at the median with the
interpreter's own 5 ms, with outliers above 7, and 2.2 ms with this; below it nothing is won.

*Huge pages.* Arrow's allocator, mimalloc, asks the kernel for pages of 2 MB. Whoever touches one
first waits until the kernel has cleared 2 MB, and perhaps moved others to make room: steps that
copied 0.3 MB took 6 to 17 ms, all but one of them in the kernel, and 1.4 ms at most without.

*Arenas.* glibc's allocator gives each thread, up to eight a processor, a heap of its own, and each
keeps what was freed in it. Where memory is limited all threads share two: beside an UPDATE of
100,000 rows a server of 384 MiB took 280 MiB, and 317 with an arena a thread.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .collector import COLLECTOR
from .memory import LIMIT

SWITCH_SECONDS = 0.0002

ARENAS_MAX = 2
ARENAS_FREE_BYTES = 2 << 30
"""The memory from which on arenas are not counted."""

_PR_SET_THP_DISABLE, _PR_GET_THP_DISABLE = 41, 42
_M_ARENA_MAX = -8


def share_arenas() -> None:
    """From now on threads share arenas of the allocator, where memory is limited. To be called
    before there are many."""
    if sys.platform == "linux" and LIMIT.byte_count < ARENAS_FREE_BYTES:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc's alone
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, ARENAS_MAX)


@contextmanager
def tuned_process() -> Iterator[None]:
    """Within the block, collections pass over whatever was alive at its beginning, threads that
    wait for the interpreter's lock ask for it soon, and memory comes in small pages."""
    interval = sys.getswitchinterval()
    small_pages = max(0, _prctl(_PR_GET_THP_DISABLE, 0))
    _prctl(_PR_SET_THP_DISABLE, 1)
    COLLECTOR.begin_passing()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        _prctl(_PR_SET_THP_DISABLE, small_pages)
        sys.setswitchinterval(interval)
        COLLECTOR.end_passing()


def _prctl(option: int, value: int) -> int:
    """The answer of prctl(2): -1 where the kernel does not know the option."""
    if sys.platform != "linux":
        return 0
    zero = ctypes.c_ulong(0)
    return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero))
