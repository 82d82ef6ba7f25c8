"""Whole-system runs from one seed.

    sim = Simulation(seed=7)
    result = sim.run(scenario(sim))     # virtual time: an hour costs what happens in it
    sim.disk = sim.disk.crash()         # the machine came back with this
    sim.run(recover(sim))               # time goes on

A run ends when its coroutine does. Tasks left over are cancelled, newest first. A run fails when
its coroutine raises, when a task died and nobody asked why, when everything waits and no timer
will wake it (`SimulationDeadlock`), and when it passes its limit of virtual time.

The same seed gives the same history, in whichever process and behind whatever ran before; two runs
are alike if their `fingerprint` is. (Code that iterates a set of strings or of bytes would break
that: Python hashes them otherwise in each process.)
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Coroutine
from random import Random
from typing import Any, TypeVar

from .sim_disk import SimDisk
from .sim_offload import SimOffload
from .virtual_loop import SimulationDeadlock, SimulationTimeout, VirtualLoop

__all__ = ["SimWall", "Simulation", "SimulationDeadlock", "SimulationTimeout"]

T = TypeVar("T")

START_UNIX_US = 1_767_225_600_000_000
"""Virtual time begins at 2026-01-01T00:00:00Z."""


class SimWall:
    """A wall clock that follows virtual time, and can be made to jump."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._jumped_us = 0
        self._slept = 0.0

    def unix_us(self) -> int:
        return START_UNIX_US + self._jumped_us + round(self._simulation.now * 1e6)

    def monotonic_ns(self) -> int:
        return round((self._slept + self._simulation.now) * 1e9)

    def suspend(self, seconds: float) -> None:
        """The machine sleeps: when it wakes, every clock of it has gone on."""
        self._slept += seconds
        self.jump(seconds)

    def jump(self, seconds: float) -> None:
        """Sets the wall clock ahead, or back when negative. Monotonic time does not notice."""
        self._jumped_us += round(seconds * 1e6)


class Simulation:
    """A machine, its time and its luck, from one seed.

    Tasks that are not `shuffled` run in the order in which they were woken, as on asyncio's own
    loop: two that keep step there, each in the way of the other, soon fall out of it otherwise.
    """

    def __init__(self, seed: int, *, time_limit: float = 3600.0, shuffled: bool = True) -> None:
        self.seed = seed
        self._shuffled = shuffled
        self.random = Random(f"{seed}:test")
        self.wall = SimWall(self)
        self.offload = SimOffload(Random(f"{seed}:offload"))
        self.disk = SimDisk(Random(f"{seed}:disk"))
        self._scheduler = Random(f"{seed}:scheduler")
        self._time_limit = time_limit
        self._now = 0.0
        self._loop: VirtualLoop | None = None

    @property
    def now(self) -> float:
        """Virtual seconds since the simulation began."""
        return self._loop.time() if self._loop is not None else self._now

    def fingerprint(self) -> str:
        """Of the time, and of where the scheduler's luck has got to: each choice among tasks that
        were ready together has moved it."""
        return f"{zlib.crc32(repr((self.now, self._scheduler.getstate())).encode()):08x}"

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs to the end of `coroutine` on a fresh loop, at the time where the last run ended."""
        assert self._loop is None, "a run does not nest"
        loop = VirtualLoop(
            start=self._now,
            time_limit=self._time_limit,
            random=self._scheduler,
            shuffled=self._shuffled,
        )
        failures: list[BaseException] = []
        loop.set_exception_handler(lambda _, context: failures.append(_failure(context)))
        self._loop = loop
        main = loop.create_task(coroutine, name="main")
        try:
            try:
                result = loop.run_until_complete(main)
            finally:
                _finish(loop)
                failures += loop.unretrieved_errors()
        except BaseException as error:
            error.add_note(f"seed {self.seed}")
            for failure in failures:
                if failure is not error:
                    error.add_note(f"and a task failed: {failure!r}")
            raise
        finally:
            self._now = loop.time()
            self._loop = None
            loop.close()
        if failures:
            failures[0].add_note(f"seed {self.seed}: a task failed and nobody asked why")
            raise failures[0]
        return result


def _failure(context: dict[str, Any]) -> BaseException:
    error = context.get("exception")
    return error if isinstance(error, BaseException) else RuntimeError(context["message"])


def _finish(loop: VirtualLoop) -> None:
    """Cancels what is left and lets it clean up."""
    loop.extend_limit(60.0)
    left = loop.pending_tasks()
    for task in reversed(left):
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left))
    loop.run_until_complete(loop.shutdown_asyncgens())
