"""Going back to a savepoint: undoing part of a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..engine import EngineStall
from .host import TransactionHost
from .intent_history import restoration
from .limits import COMMAND_ROWS_MAX, COMMANDS_AHEAD_MAX, STALL_BACKOFF_SECONDS
from .record import TransactionRecord


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
    younger = [key for key, written in record.intents.items() if written > sequence]
    for start in range(0, len(younger), COMMAND_ROWS_MAX):
        keys = younger[start : start + COMMAND_ROWS_MAX]
        while True:
            check_active()
            try:
                undone = restoration(host.engine, record, keys, sequence)
                host.propose(undone.operations)
                break
            except EngineStall:
                await asyncio.sleep(STALL_BACKOFF_SECONDS)
        record.intents.update(undone.restored)
        host.locks.release_intents(undone.removed, record)
        if len(younger) > COMMAND_ROWS_MAX:
            await host.released(host.applied_index - COMMANDS_AHEAD_MAX)
            await asyncio.sleep(0)
    check_active()
    host.locks.release_locks(record, after=sequence)
