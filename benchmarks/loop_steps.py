"""What single steps of an event loop take: CPU time, and time on the wall."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, Handle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tailrace.kvlayer.process.fibre import cpu_of_slices_ns


@dataclass(slots=True)
class WorstStep:
    """The longest step so far, in milliseconds, and the callback that it was."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    doing: str = ""


@contextmanager
def worst_step(loop: AbstractEventLoop | None = None) -> Iterator[WorstStep]:
    """Within the block each step of `loop`, or of every loop, is measured. A slice of a fibre is
    part of the step that waits for it, by the clock of the fibre's own thread."""
    worst, run = WorstStep(), Handle._run

    def measured(handle: Handle) -> None:
        if loop is not None and handle._loop is not loop:  # type: ignore[attr-defined]
            run(handle)
            return
        cpu, wall = time.thread_time_ns() + cpu_of_slices_ns(), time.perf_counter()
        run(handle)
        spent = (time.thread_time_ns() + cpu_of_slices_ns() - cpu) / 1e6
        if spent > worst.cpu_ms:
            worst.cpu_ms, worst.doing = spent, repr(handle)
        worst.wall_ms = max(worst.wall_ms, (time.perf_counter() - wall) * 1000)

    Handle._run = measured  # type: ignore[method-assign, assignment]
    try:
        yield worst
    finally:
        Handle._run = run  # type: ignore[method-assign]
