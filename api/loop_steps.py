"""Long steps of the event loop: everything else that a process serves waits for each of them.

A step is one callback of the loop. What it takes is CPU time, of the loop's thread and of the
fibres (`kvlayer.process.fibre`) that it waited for, so a machine that others use makes no step
long.
"""

from __future__ import annotations

import gc
import logging
import time
from asyncio import AbstractEventLoop, Handle, Task
from collections.abc import Iterator
from contextlib import contextmanager

from ..kvlayer.process.fibre import cpu_of_slices_ns
from ..sql import statement_begun

LONG_STEP_NS = 10_000_000
LOUD_STEP_NS = 100_000_000
"""From so much on a step is a warning; a shorter one is told to who asks for `--log-level info`."""

FRESH_PARTS = 10
"""A long step may be told a tenth of `long_ns` too long: that of what ran just before it."""

LOGGED_EVERY_NS = 1_000_000_000
"""Between two lines of the log, if the later step is not the longest of all so far; a line says how
many steps had none."""

TEXT_SHOWN_MAX = 500

_log = logging.getLogger("tailrace.loop")


class LoopSteps:
    """Counts steps of more than `long_ns`, and logs what they were. `count` is of all, `longest_ns`
    the longest's time."""

    def __init__(self, long_ns: int = LONG_STEP_NS) -> None:
        self.count = 0
        self.longest_ns = 0
        self._long_ns = long_ns
        self._collecting_since_ns = self._collected_ns = 0
        self._logged_ns: int | None = None
        self._unlogged = 0

    @contextmanager
    def watched(self, loop: AbstractEventLoop) -> Iterator[None]:
        """Within the block, steps of `loop` are measured. Only the program that owns its process
        may ask for it: the interpreter's own `Handle` is changed, for asyncio has no hook."""
        run, long_ns, fresh_ns = Handle._run, self._long_ns, self._long_ns // FRESH_PARTS
        clock, spent = time.monotonic_ns, time.thread_time_ns
        # Reading CPU time takes as long as ten readings of the clock. So it is read now and then,
        # and behind a step that was long by the clock.
        known, known_at = spent() + cpu_of_slices_ns(), clock()

        def measured(handle: Handle) -> None:
            nonlocal known, known_at
            if handle._loop is not loop:  # type: ignore[attr-defined]
                run(handle)
                return
            began = clock()
            if began - known_at > fresh_ns:
                known, known_at = spent() + cpu_of_slices_ns(), began
            run(handle)
            elapsed = clock() - began
            if elapsed > long_ns or elapsed > self.longest_ns:
                took = min(spent() + cpu_of_slices_ns() - known, elapsed)
                if took > long_ns:
                    self._note(handle, took)
                self.longest_ns = max(self.longest_ns, took)

        Handle._run = measured  # type: ignore[method-assign, assignment]
        gc.callbacks.append(self._note_collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._note_collection)
            Handle._run = run  # type: ignore[method-assign]

    def _note_collection(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._collecting_since_ns = time.thread_time_ns()
        else:
            self._collected_ns += time.thread_time_ns() - self._collecting_since_ns

    def _note(self, handle: Handle, took_ns: int) -> None:
        self.count += 1
        longest = took_ns > self.longest_ns
        collected_ns, self._collected_ns = min(self._collected_ns, took_ns), 0
        level = logging.WARNING if took_ns >= LOUD_STEP_NS else logging.INFO
        if not _log.isEnabledFor(level):
            return
        now = time.monotonic_ns()
        soon = self._logged_ns is not None and now - self._logged_ns < LOGGED_EVERY_NS
        if soon and not longest:
            self._unlogged += 1
            return
        _log.log(
            level,
            "a step of the event loop took %.0f ms of CPU time, %.0f of it in the collector, "
            "for %s (%d more since the last such line)",
            took_ns / 1e6,
            collected_ns / 1e6,
            _doing(handle),
            self._unlogged,
        )
        self._logged_ns, self._unlogged = now, 0


def _doing(handle: Handle) -> str:
    """The callback, or the task whose step it was, and the statement that began the task, with its
    session and user."""
    step = _task(handle) or repr(handle)[:TEXT_SHOWN_MAX]
    statement = statement_begun(handle._context)  # type: ignore[attr-defined]
    return step if statement is None else f"{step}, begun by {statement}"


def _task(handle: Handle) -> str | None:
    """The name and the function of the task whose step `handle` was. asyncio's own callback names
    neither, but it refers to the task."""
    for referent in gc.get_referents(handle._callback):  # type: ignore[attr-defined]
        if isinstance(referent, Task):
            work = getattr(referent.get_coro(), "__qualname__", "?")
            return f"{work} ({referent.get_name()})"
    return None
