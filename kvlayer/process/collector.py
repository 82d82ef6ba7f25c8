"""The collector of cycles, of which one collection is one step of the loop, however long.

A *full* collection walks every object that is alive, and a *young* one all that was made since the
last: both hold up the loop by 0.3 µs an object. So the collector rests while a long statement is
planned in slices (`fibre`), and in a process that serves nothing but a store it *passes over* what
it has seen to live, and over what a long statement has made: `gc.freeze`, which walks nothing.

What is passed over and becomes a cycle that nobody holds stays in memory until so much was passed
over that all of it is walked again, in one step: plans, which are most of it, go without the
collector (`sql.syntax.trees.dismantle`).
"""

from __future__ import annotations

import gc
import sys
import threading
from typing import Literal

from .memory import share

MADE_MANY = 5000
"""Objects that a young collection walks in two milliseconds at most."""
BLOCKS_MAX = share(8, at_most=300_000_000) // 75
"""Blocks of memory, 300 MB, by which what is in use may grow until all is walked again; fewer where
there is little memory."""


class Collector:
    """The process's collector. Loops have threads of their own: it is used from several."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fibres = 0
        self._enabled = False
        self._made_many = False  # since `suspend`
        self._passing = False
        self._blocks = 0  # in use when all was walked last
        self._due = False  # all is to be walked: nothing is passed over until then

    def suspend(self) -> None:
        """Rests until `resume` is called as often."""
        with self._lock:
            self._fibres += 1
            if self._fibres == 1:
                self._enabled = gc.isenabled()
                gc.disable()

    def resume(self, made_many: bool = False) -> None:
        """`made_many` says that many objects were made meanwhile. The interpreter's own count says
        little where as many were freed."""
        with self._lock:
            self._fibres -= 1
            self._made_many |= made_many
            if self._fibres == 0 and self._enabled:
                if self._passing and (self._made_many or gc.get_count()[0] > MADE_MANY):
                    self._pass_over()
                self._made_many = False
                gc.enable()

    def begin_passing(self) -> None:
        """From now on it passes over what is alive, and what it will have seen to live."""
        gc.collect()
        gc.freeze()
        self._passing, self._due = True, False
        self._blocks = sys.getallocatedblocks()
        gc.callbacks.append(self._collected)

    def end_passing(self) -> None:
        gc.callbacks.remove(self._collected)
        self._passing = False
        gc.unfreeze()

    def _collected(self, phase: Literal["start", "stop"], info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            if self._due:
                self._due, self._blocks = False, sys.getallocatedblocks()
            self._pass_over()

    def _pass_over(self) -> None:
        gc.freeze()
        if sys.getallocatedblocks() - self._blocks > BLOCKS_MAX:
            self._due = True
        if self._due:
            gc.unfreeze()


COLLECTOR = Collector()
