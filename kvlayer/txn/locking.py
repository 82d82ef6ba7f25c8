"""Locking of keys one after another by a transaction, and its reads of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from ..transaction_modes import Isolation, LockMode, WhenLocked
from .host import TransactionHost
from .locks import Turn
from .record import TransactionRecord
from .refresh import refresh
from .writing import lock_all_step, lock_step

PORTION_KEYS = 256
"""Keys that are locked in one step of the loop: each takes 15 µs where its table has changed."""


class RunStep(Protocol):
    """Runs a step until it succeeds, waiting for what is in its way: see `steps`."""

    async def __call__(self, step: Callable[[Turn | None], bool | None]) -> bool | None: ...


async def lock_keys(
    host: TransactionHost,
    record: TransactionRecord,
    keys: Sequence[bytes],
    mode: LockMode,
    when_locked: WhenLocked,
    run: RunStep,
    check_active: Callable[[], None],
) -> list[bytes]:
    """Locks the keys in turn, and returns those it got.

    The transaction moves up to the newest value of a key, if what it has read still holds there.
    A serializable one that waited and has read nothing yet moves up in any case, so that it sees
    what those did for whom it waited. (Of the others it is not known what they have read.)
    """
    serializable = record.isolation is Isolation.SERIALIZABLE
    fresh = serializable and not (record.read_spans or record.intents or record.buffer)
    locked: list[bytes] = []
    changed = waited = False
    for start in range(0, len(keys), PORTION_KEYS):
        if start:
            await asyncio.sleep(0)
            check_active()  # an aborted transaction releases no lock any more
        portion = keys[start : start + PORTION_KEYS]
        exclusive = len(portion) > 1 and mode is LockMode.EXCLUSIVE
        if exclusive and lock_all_step(host, record, portion):
            locked += portion
            continue
        for key in portion:

            def step(turn: Turn | None, key: bytes = key) -> bool | None:
                nonlocal waited
                check_active()
                waited |= turn is not None
                return lock_step(host, record, key, mode, when_locked, turn)

            newer = await run(step)
            if newer is not None:
                locked.append(key)
                changed |= newer
    if changed:
        # Reading below the newest value would only fail at commit: try to move up now.
        await refresh(host, record, record.write_timestamp)
    elif waited and fresh:
        record.move(host.clock.now())
        await refresh(host, record, record.write_timestamp)
    return locked
