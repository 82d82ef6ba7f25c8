"""What single steps of an event loop take: CPU time, and time on the wall."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, Handle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tailrace.kvlayer.fibre import Fibre


@dataclass(slots=True)
class WorstStep:
    """The longest step so far, in milliseconds, and the callback that it was."""

    cpu_ms: float = 0.0
    wall_ms: float = 0.0
    doing: str = ""
    _fibres: float = 0.0


@contextmanager
def worst_step(loop: AbstractEventLoop | None = None) -> Iterator[WorstStep]:
    """Within the block each step of `loop`, or of every loop, is measured. A slice of a fibre is
    part of the step that waits for it, though another thread's clock counts it."""
    worst = WorstStep()
    run, run_slice = Handle._run, Fibre.run_slice

    def measured(handle: Handle) -> None:
        if loop is not None and handle._loop is not loop:  # type: ignore[attr-defined]
            run(handle)
            return
        worst._fibres = 0.0
        cpu, wall = time.thread_time(), time.perf_counter()
        run(handle)
        spent = (time.thread_time() - cpu + worst._fibres) * 1000
        if spent > worst.cpu_ms:
            worst.cpu_ms, worst.doing = spent, repr(handle)
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
