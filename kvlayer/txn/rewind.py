"""Going back to a savepoint: undoing part of a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice

from ..engine import EngineStall
from .host import TransactionHost
from .intent_history import Restoration, restoration
from .limits import COMMAND_ROWS_MAX, COMMANDS_AHEAD_MAX, STALL_BACKOFF_SECONDS
from .record import TransactionRecord

KEYS_AT_ONCE = 20_000
"""Keys that are looked at in one step of the loop: 1 ms."""


async def roll_back_to(
    host: TransactionHost,
    record: TransactionRecord,
    sequence: int,
    check_active: Callable[[], None],
) -> None:
    """Undoes what the transaction wrote and locked since `sequence`.

    Keys that it had not written before are free again, as in Postgres; so are keys that it had not
    locked. A lock that was raised from shared to exclusive is what it was. Reads stay read: what
    they showed may have decided what the client does next.

    `check_active` raises once the transaction has ended: it may be aborted between two commands,
    and then its intents are somebody else's to remove. Interrupted half way, the transaction can
    only be rolled back further, or whole.
    """
    intents = record.intents
    while keys := intents.last(COMMAND_ROWS_MAX, after=sequence):
        undone = await _undone(host, record, keys, sequence, check_active)
        assert undone.removed == keys, (undone, keys)
        intents.drop_last(keys)
        host.locks.release_intents(keys, record)
        await _go_on(host, keys)
    again = await _rewritten(record, sequence, check_active)
    for start in range(0, len(again), COMMAND_ROWS_MAX):
        keys = again[start : start + COMMAND_ROWS_MAX]
        undone = await _undone(host, record, keys, sequence, check_active)
        assert undone.restored.keys() == set(keys), (undone, keys)
        for key, restored in undone.restored.items():
            intents.rewritten.put((key,), restored)
        await _go_on(host, keys)
    check_active()
    while host.locks.release_last(record, after=sequence):
        await asyncio.sleep(0)
        check_active()


async def _rewritten(
    record: TransactionRecord, sequence: int, check_active: Callable[[], None]
) -> list[bytes]:
    """The keys that were written before, and again since."""
    found: list[bytes] = []
    rewritten = iter(record.intents.rewritten.items())
    while portion := list(islice(rewritten, KEYS_AT_ONCE)):
        found += [key for key, written in portion if written > sequence]
        if len(portion) == KEYS_AT_ONCE:
            await asyncio.sleep(0)
            check_active()  # which goes before another look: an end takes keys away
    return found


async def _undone(
    host: TransactionHost,
    record: TransactionRecord,
    keys: list[bytes],
    sequence: int,
    check_active: Callable[[], None],
) -> Restoration:
    """Undoes what was written to the keys since, in the last step before it returns."""
    while True:
        check_active()
        try:
            undone = restoration(host.engine, record, keys, sequence)
            host.propose(undone.operations)
            return undone
        except EngineStall:
            await asyncio.sleep(STALL_BACKOFF_SECONDS)


async def _go_on(host: TransactionHost, keys: list[bytes]) -> None:
    if len(keys) == COMMAND_ROWS_MAX:
        await host.released(host.applied_index - COMMANDS_AHEAD_MAX)
        await asyncio.sleep(0)
