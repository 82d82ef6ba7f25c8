"""An event loop whose time is virtual and whose scheduler is seeded.

Time stands still while anything is ready, and jumps to the next timer when nothing is. Nothing
here waits for the machine: there are no threads and no sockets, so one seed gives one history.

What the seed may change is the order in which *tasks* that are ready together wake up: asyncio
promises nothing about it. What asyncio does promise is kept: callbacks given to `call_soon` run in
the order given, and a task's own steps follow each other.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context
from random import Random
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ROUNDS_AT_ONE_MOMENT_MAX = 2_000_000
"""A task that spins without sleeping would otherwise hang the test for ever."""


class SimulationDeadlock(Exception):
    """Every task waits, and no timer will ever wake one."""


class SimulationTimeout(Exception):
    """The run passed its limit of virtual time, or turned for ever in one moment of it."""


class _NumberedFuture(asyncio.Future[Any]):
    """Hashes by its number: asyncio and its users iterate sets of futures, and an address, which
    a future hashes by otherwise, is another in every run."""

    def __init__(self, *, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self._number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _NumberedTask(asyncio.Task[Any]):
    """Likewise. A `TaskGroup` cancels the members of a set, and a wait calls back from one."""

    def __init__(self, coro: Any, *, number: int, **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class _VirtualSelector:
    """Stands where a loop waits for the machine: moves time instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        self._loop.pass_time(timeout)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop of one simulation run."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(
        self, *, start: float, time_limit: float, random: Random, shuffled: bool = True
    ) -> None:
        super().__init__()
        self._shuffled = shuffled
        self._now = start
        self._time_limit = start + time_limit
        self._random = random
        self._rounds = 0
        self._selector = _VirtualSelector(self)
        self._clock_resolution = 1e-9
        self._task_count = 0
        self._future_count = 0
        self._generator_count = 0
        self._generators: weakref.WeakValueDictionary[int, AsyncGenerator[Any, Any]]
        self._generators = weakref.WeakValueDictionary()
        self._tasks: weakref.WeakValueDictionary[int, asyncio.Task[Any]]
        self._tasks = weakref.WeakValueDictionary()

    def time(self) -> float:
        return self._now

    def pass_time(self, timeout: float | None) -> None:
        """What the loop does instead of waiting `timeout` seconds (None: for ever)."""
        if timeout == 0:
            self._rounds += 1
            if self._rounds > ROUNDS_AT_ONE_MOMENT_MAX:
                raise SimulationTimeout(f"the run does not leave {self._now:.6f} s{self.waits()}")
            return
        self._rounds = 0
        if timeout is None:
            raise SimulationDeadlock(f"nothing will ever happen again{self.waits()}")
        self._now = max(self._now, self._scheduled[0].when())
        if self._now > self._time_limit:
            raise SimulationTimeout(f"virtual time reached {self._now:.3f} s{self.waits()}")

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        # The default name counts for the whole process, which no seed governs.
        self._task_count += 1
        number = self._task_count
        task = _NumberedTask(
            coro, number=number, loop=self, name=name or f"sim-{number}", context=context
        )
        self._tasks[number] = task
        return task

    def create_future(self) -> asyncio.Future[Any]:
        self._future_count += 1
        return _NumberedFuture(number=self._future_count, loop=self)

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        self._generator_count += 1
        self._generators[self._generator_count] = agen
        super()._asyncgen_firstiter_hook(agen)  # type: ignore[misc]

    async def shutdown_asyncgens(self) -> None:
        """Closes the generators that nobody closed, in order of their first step. One that has
        ended may still await the garbage collector, whose moments no seed governs."""
        for generator in list(self._generators.values()):
            if getattr(generator, "ag_frame", None) is not None:
                await generator.aclose()
        self._asyncgens_shutdown_called = True

    def pending_tasks(self) -> list[asyncio.Task[Any]]:
        """Tasks that are not done, in order of creation."""
        return [task for task in self._tasks.values() if not task.done()]

    def unretrieved_errors(self) -> list[BaseException]:
        """Errors of tasks that ended and that nobody asked."""
        errors: list[BaseException] = []
        for task in list(self._tasks.values()):
            if task.done() and not task.cancelled() and task._log_traceback:
                error = task.exception()
                assert error is not None, task
                errors.append(error)
        return errors

    def waits(self) -> str:
        """Where each task stands, for messages."""
        lines = [f"\n  {_standing(task)}" for task in self.pending_tasks()]
        return "; tasks:" + "".join(lines) if lines else "; there are no tasks"

    def extend_limit(self, seconds: float) -> None:
        """Grants more virtual time from now: for cleaning up after the limit was passed."""
        self._time_limit = max(self._time_limit, self._now + seconds)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        raise RuntimeError(f"a simulation has no threads: call {func!r} through its Offload")

    def _run_once(self) -> None:
        if self._shuffled:
            self._permute_ready()
        super()._run_once()  # type: ignore[misc]

    def _permute_ready(self) -> None:
        """Shuffles task wake-ups among the places they hold; other callbacks keep theirs."""
        ready = self._ready
        if len(ready) < 2:
            return
        places = [place for place, handle in enumerate(ready) if _wakes_task(handle)]
        if len(places) < 2:
            return
        handles = [ready[place] for place in places]
        self._random.shuffle(handles)
        for place, handle in zip(places, handles, strict=True):
            ready[place] = handle

    def _process_events(self, event_list: list[object]) -> None:
        assert not event_list, event_list

    def _write_to_self(self) -> None:
        """Wakes the selector for `call_soon_threadsafe`; ours never sleeps."""


def _wakes_task(handle: asyncio.Handle) -> bool:
    callback = handle._callback  # type: ignore[attr-defined]
    if not isinstance(getattr(callback, "__self__", None), asyncio.Task):
        return False
    # `call_soon(task.cancel)` is an ordinary callback.
    return getattr(callback, "__name__", "") != "cancel"


def _standing(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    where = f"{frames[-1].f_code.co_qualname}:{frames[-1].f_lineno}" if frames else "not started"
    return f"{task.get_name()} at {where}"
