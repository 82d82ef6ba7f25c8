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
from ..transaction_modes import Isolation, Priority
from .host import TransactionHost
from .limits import STALL_BACKOFF_SECONDS
from .locks import LockConflict, Turn, Wish
from .record import TransactionRecord, TransactionStatus
from .resolution import abort, push

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
                    if _push_aside(host, met, waiter, at_present=at_present):
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


def _push_aside(
    host: TransactionHost,
    conflict: LockConflict,
    waiter: TransactionRecord | None,
    *,
    at_present: bool,
) -> bool:
    """Pushes the holder out of the way, in this step, if the waiter may. Raises EngineStall.

    A reader moves a holder of lower priority above its own timestamp; and one of the same priority
    where that costs the holder nothing, because it does not promise that its reads still hold at
    its commit. Who wants the key itself aborts a holder of lower priority. Everybody else waits;
    also who reads at the present, for however often the holder moved up it would be below that.
    """
    holder = conflict.holder
    if holder is None or holder.status is not TransactionStatus.PENDING:
        return False
    mine = Priority.NORMAL if waiter is None else waiter.priority
    if conflict.wish is Wish.READ:
        free = holder.isolation is not Isolation.SERIALIZABLE and not holder.read_spans
        if at_present:
            return False
        if mine > holder.priority or (free and mine >= holder.priority):
            push(host, holder)
            host.metrics.add("kv_pushes_total")
            return True
        return False
    if mine <= holder.priority:
        return False
    because = f"transaction {holder.id.hex()} gave way to one of {mine.name} priority"
    abort(host, holder, because)
    host.metrics.add("kv_pushes_total")
    return True
