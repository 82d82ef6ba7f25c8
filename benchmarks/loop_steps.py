"""What single steps of an event loop take: CPU time, and time on the wall."""

from __future__ import annotations

import time
from asyncio import Handle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tailrace.kvlayer.fibre import Fibre


@dataclass(slots=True)
class WorstStep:
    """The longest step so far, in milliseconds."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    _fibres: float = 0.0


@contextmanager
def worst_step() -> Iterator[WorstStep]:
    """Within the block each step of every loop is measured. A slice of a fibre is part of the step
    that waits for it, though another thread's clock counts it."""
    worst = WorstStep()
    run, run_slice = Handle._run, Fibre.run_slice

    def measured(handle: Handle) -> None:
        worst._fibres = 0.0
        cpu, wall = time.thread_time(), time.perf_counter()
        run(handle)
        worst.cpu_ms = max(worst.cpu_ms, (time.thread_time() - cpu + worst._fibres) * 1000)
        worst.wall_ms = max(worst.wall_ms, (time.perf_counter() - wall) * 1000)

    def sliced(fibre: Fibre[object]) -> bool:
        # The loop's thread stands still, so that the process's time is the fibre's, or DuckDB's.
        cpu, wall = time.process_time(), time.perf_counter()
        ended = run_slice(fibre)
        worst._fibres += min(time.process_time() - cpu, time.perf_counter() - wall)
        return ended

    Handle._run, Fibre.run_slice = measured, sliced  # type: ignore[method-assign, assignment]
    try:
        yield worst
    finally:
        Handle._run, Fibre.run_slice = run, run_slice  # type: ignore[method-assign]
