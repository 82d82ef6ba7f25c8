"""Threads of which one runs at a time, in an order that a seed chooses.

Code that blocks, holds locks and unwinds is run as it is, by real threads; it hands the baton back
wherever it calls `pause`, so a run is the same for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from threading import Semaphore, Thread, current_thread

STEPS_MAX = 200_000
"""A run that takes more does not come to an end."""


class Killed(BaseException):
    """The process of this thread is dead: whatever it still does has no effect."""


class Process:
    """Threads that die together."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.dead = False


class Actor:
    """A thread that waits for the baton."""

    def __init__(self, process: Process, work: Callable[[], None], back: Semaphore) -> None:
        self.process = process
        self.error: BaseException | None = None
        self.done = False
        self._work = work
        self._go = Semaphore(0)
        self._back = back
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()

    def turn(self) -> None:
        """Runs until it pauses, or ends."""
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        self._back.release()
        self._go.acquire()

    def _run(self) -> None:
        self._go.acquire()
        try:
            with suppress(Killed):
                self._work()
        except BaseException as error:
            self.error = error
        self.done = True
        self._back.release()


class Baton:
    """Who runs next."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._back = Semaphore(0)
        self._actors: dict[Thread, Actor] = {}

    def spawn(self, process: Process, work: Callable[[], None]) -> None:
        actor = Actor(process, work, self._back)
        self._actors[actor.thread] = actor

    def pause(self) -> None:
        """Lets others run. Raises Killed in a process that is dead."""
        actor = self._actors[current_thread()]
        if not actor.process.dead:
            actor.pause()
        self.check()

    def check(self) -> None:
        """Raises Killed in a process that is dead."""
        if self._actors[current_thread()].process.dead:
            raise Killed

    @property
    def process(self) -> Process:
        """The process of the thread that runs."""
        return self._actors[current_thread()].process

    def run(self) -> None:
        """Until every thread has ended. Raises the first error that is none of dying."""
        for _ in range(STEPS_MAX):
            waiting = [actor for actor in self._actors.values() if not actor.done]
            if not waiting:
                return
            actor = self.random.choice(waiting)
            actor.turn()
            if actor.done:
                actor.thread.join()
                del self._actors[actor.thread]
            if actor.error is not None:
                raise actor.error
        raise AssertionError(f"{STEPS_MAX} steps were not enough")
