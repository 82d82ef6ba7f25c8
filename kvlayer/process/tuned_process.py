"""Settings of the interpreter for a process that does nothing but serve a store.

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
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from .collector import COLLECTOR

SWITCH_SECONDS = 0.0002


@contextmanager
def tuned_process() -> Iterator[None]:
    """Within the block, collections pass over whatever was alive at its beginning, and threads
    that wait for the interpreter's lock ask for it soon."""
    interval = sys.getswitchinterval()
    COLLECTOR.begin_passing()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        COLLECTOR.end_passing()
