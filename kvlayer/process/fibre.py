"""Long work of Python, cut into slices of the loop from within.

A function that calls `give_way` now and then is run by `in_slices` a slice at a time, and between
two slices the loop does what else is due:

    def plan():
        for node in tree.walk():
            give_way()
            …

    made = await in_slices(plan)

The function has a stack of its own, a thread's, which is a coroutine here and nothing else: the
loop stands still while it runs, and it stands still while the loop runs, so that no Python of it
ever competes for the interpreter's lock. A slice ends by the number of its steps or by the loop's
clock, which a simulation's does not move within a slice: its history is the same in each run. A
task that is cancelled ends its function at the next `give_way`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from .collector import COLLECTOR

T = TypeVar("T")

STEPS_PER_SLICE = 192
"""Calls of `give_way` in a slice: 1 to 60 µs lie between two. A slice has its price, a change of
threads and a turn of the loop, so that many short ones would let a plan starve beside others."""
SLICE_SECONDS = 0.003
"""The time by the loop's clock after which a slice ends, whatever its steps."""
IDLE_TURN_SECONDS = 0.0001
"""A turn of the loop that takes no longer had nothing to do."""
STACK_BYTES = 256 << 20
"""Address space of a fibre's stack; memory is taken where it is used. Compiled code that recurses
checks no limit but this one."""
RECURSION_MAX = 60_000
"""Frames of Python in a fibre: those of the deepest tree that the limits on statements allow."""


class Abandoned(BaseException):
    """The result of a fibre is wanted no more. Raised by `give_way`; caught only for tidying."""


class _Current(threading.local):
    fibre: Fibre[object] | None = None


_current = _Current()
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
"""The lock of each loop, which keeps one slice of one fibre to a turn, also where a fibre begins in
the step in which another ended."""


_cpu_of_slices_ns = 0


def cpu_of_slices_ns() -> int:
    """The CPU time of all slices of the process so far: a loop's own thread waits meanwhile."""
    return _cpu_of_slices_ns


def give_way(steps: int = 1) -> None:
    """Lets the loop go on, if this is a fibre whose slice has ended. `steps` says how much work
    there was since the last call."""
    fibre = _current.fibre
    if fibre is not None:
        fibre.left -= steps
        if fibre.left <= 0 or fibre.clock() >= fibre.until:
            fibre.pause()


def is_fibre() -> bool:
    """Whether the caller runs in slices, and so may give way."""
    return _current.fibre is not None


def end_slice() -> None:
    """Lets the loop go on: what follows, or what was before, is about a slice by itself."""
    give_way(STEPS_PER_SLICE)


def at_end(work: Callable[[], None]) -> None:
    """Has the fibre, if this is one, do something more behind its last step, in slices too: what it
    made and does not return, and what holds itself in cycles, is best taken apart there."""
    fibre = _current.fibre
    if fibre is not None:
        fibre.endings.append(work)


async def in_slices(work: Callable[[], T]) -> T:
    """Returns or raises the outcome of `work`. Other tasks run between its slices."""
    loop = asyncio.get_running_loop()
    turn = _turns.setdefault(loop, asyncio.Lock())
    fibre = Fibre(work, loop.time)
    slices = 0
    COLLECTOR.suspend()
    try:
        while True:
            await turn.acquire()
            slices += 1
            began = loop.time()
            if fibre.run_slice():
                loop.call_soon(turn.release)
                return fibre.result()
            try:
                await _leave_room(loop, loop.time() - began)
            finally:
                turn.release()
    finally:
        fibre.abandon()
        COLLECTOR.resume(made_many=slices > 1)


async def in_slices_where(long: bool, work: Callable[[], T]) -> T:
    """Returns or raises the outcome of `work`, in slices where it is `long`."""
    return await in_slices(work) if long else work()


async def _leave_room(loop: asyncio.AbstractEventLoop, taken: float) -> None:
    """Lets the loop do what is due, and where that is anything, as much again as the slice took: a
    busy loop spends half of its time on fibres at most."""
    ended = loop.time()
    await asyncio.sleep(0)
    if loop.time() - ended > IDLE_TURN_SECONDS:
        await asyncio.sleep(taken)


class _DeepRecursion:
    """The interpreter's limit on recursion, which is `RECURSION_MAX` while any thread waits for a
    slice of a fibre to end, and as it was at all other times: a loop has no such stack."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # loops have threads of their own
        self._slices = 0
        self._limit = 0

    def allow(self) -> None:
        with self._lock:
            self._slices += 1
            if self._slices == 1:
                self._limit = sys.getrecursionlimit()
                sys.setrecursionlimit(RECURSION_MAX)

    def forbid(self) -> None:
        with self._lock:
            self._slices -= 1
            if self._slices == 0:
                sys.setrecursionlimit(self._limit)


_deep_recursion = _DeepRecursion()


class _EndOfSlice:
    """An argument of `Lock.acquire`, which ends a slice when the lock's code reads it.

    The loop goes on at once, and lowers the limit on recursion for every thread. A fibre that is
    deeper than the limit can then call nothing more: the interpreter ends the process. So the fibre
    is within the call that waits before the loop may go on.
    """

    def __init__(self, paused: threading.Lock) -> None:
        self._paused = paused

    def __bool__(self) -> bool:
        self._paused.release()
        return True

    def __index__(self) -> int:
        """The number that CPython 3.11 reads where an argument is true or false."""
        self._paused.release()
        return 1


class Fibre(Generic[T]):
    """A function with a stack of its own, which runs while its caller waits in `run_slice`."""

    def __init__(self, work: Callable[[], T], clock: Callable[[], float] = time.monotonic) -> None:
        self.left = STEPS_PER_SLICE
        self.clock = clock
        self.until = 0.0
        self.endings: list[Callable[[], None]] = []
        self._work = work
        self._context = copy_context()
        self._go, self._paused = threading.Lock(), threading.Lock()
        self._go.acquire()
        self._paused.acquire()
        self._thread: threading.Thread | None = None
        self._done = self._abandoned = False
        self._cpu_ns = 0
        self._value: T | None = None
        self._error: BaseException | None = None

    def run_slice(self) -> bool:
        """Lets the function go on until it gives way. Returns whether it has ended."""
        assert not self._done, "a fibre that has ended has no slices"
        self.left = STEPS_PER_SLICE
        _deep_recursion.allow()
        try:
            if self._thread is None:
                self._thread = self._started()
            else:
                self._go.release()
            self._paused.acquire()
        finally:
            _deep_recursion.forbid()
        if self._done:
            self._thread.join()
        return self._done

    def result(self) -> T:
        assert self._done, "a fibre that has not ended has no result"
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set wherever there is no error

    def abandon(self) -> None:
        """Ends the function where it stands, if it has begun and not ended."""
        self._abandoned = True
        while self._thread is not None and not self._done:
            self.run_slice()

    def pause(self) -> None:
        """Ends the slice; returns when the next one begins. Only the function itself calls this."""
        self._account()
        self._go.acquire(_EndOfSlice(self._paused))  # type: ignore[arg-type]  # see there
        self.until = self.clock() + SLICE_SECONDS
        if self._abandoned:
            raise Abandoned

    def _account(self) -> None:
        global _cpu_of_slices_ns
        now = time.thread_time_ns()
        _cpu_of_slices_ns += now - self._cpu_ns
        self._cpu_ns = now

    def _started(self) -> threading.Thread:
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=self._context.run, args=(self._serve,), daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
        return thread

    def _serve(self) -> None:
        _current.fibre = self  # type: ignore[assignment]  # of whatever it returns
        self.until = self.clock() + SLICE_SECONDS
        try:
            self._value = self._work()
            while self.endings:
                self.endings.pop()()  # what it holds goes here, and not with the fibre
        except BaseException as error:
            self._error = error
        finally:
            self._done = True
            _current.fibre = None
            self._account()
            self._paused.release()
