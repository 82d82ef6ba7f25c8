"""Steps: what runs in one turn of the loop, and is run again when it could not.

A *step* is a function that evaluates, applies and appends without awaiting. It either succeeds, or
changes nothing and says what is in its way: LockConflict (another transaction holds a key) or
EngineStall (the engine would make the loop wait).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ..engine import EngineStall
from ..settings import declare_duration
from .host import TransactionHost
from .limits import STALL_BACKOFF_SECONDS
from .locks import LockConflict, Turn
from .pushing import push_aside
from .record import TransactionRecord

T = TypeVar("T")

LOCK_TIMEOUT = declare_duration(
    "kv.lock_timeout", 10.0, "how long a statement waits for a key that another transaction holds"
)


async def run_step(
    host: TransactionHost,
    step: Callable[[Turn | None], T],
    *,
    waiter: TransactionRecord | None,
    lock_timeout: float | None,
    at_present: bool = False,
) -> T:
    """Runs `step` until it succeeds, pushing aside what is in its way, or waiting it out.

    A step is given the turn that it waited for. `at_present` says that each run of it reads at a
    new timestamp. Raises LockTimeout, Deadlock, StoreClosed, and whatever else the step raises.
    """
    turn: Turn | None = None
    try:
        while True:
            host.check_open()
            conflict: LockConflict | None = None
            try:
                try:
                    return step(turn)
                except LockConflict as met:
                    if push_aside(host, met, waiter, at_present=at_present):
                        continue
                    conflict = met
            except EngineStall:
                host.metrics.add("kv_engine_stalls_total")
            if turn is not None:
                # Given back before waiting for another key: a turn that is kept meanwhile would be
                # a lock that deadlock detection knows nothing of.
                host.locks.finish(turn)
                turn = None
            if conflict is None:
                await asyncio.sleep(STALL_BACKOFF_SECONDS)
            else:
                host.metrics.add("kv_lock_waits_total")
                seconds = host.settings.get(LOCK_TIMEOUT) if lock_timeout is None else lock_timeout
                turn = await host.locks.wait(conflict, waiter, seconds)
    finally:
        if turn is not None:
            host.locks.finish(turn)
