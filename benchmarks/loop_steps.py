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
    part of the step that waits for it, by the clock of the fibre's own thread."""
    worst = WorstStep()
    run, run_slice, serve = Handle._run, Fibre.run_slice, Fibre._serve
    clocks: dict[Fibre[object], float] = {}

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
        before = clocks.get(fibre, 0.0)
        ended = run_slice(fibre)
        if not ended:
            assert fibre._thread is not None, fibre
            assert fibre._thread.ident is not None, fibre
            clock = time.pthread_getcpuclockid(fibre._thread.ident)
            clocks[fibre] = time.clock_gettime(clock)
        worst._fibres += clocks[fibre] - before
        if ended:
            del clocks[fibre]
        return ended

    def served(fibre: Fibre[object]) -> None:
        serve(fibre)
        clocks[fibre] = time.thread_time()  # who runs the last slice waits for the thread's end

    Handle._run, Fibre.run_slice = measured, sliced  # type: ignore[method-assign, assignment]
    Fibre._serve = served  # type: ignore[method-assign, assignment]
    try:
        yield worst
    finally:
        Handle._run, Fibre.run_slice = run, run_slice  # type: ignore[method-assign]
        Fibre._serve = serve  # type: ignore[method-assign]
