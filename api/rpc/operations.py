"""One operation of a transaction that a node drives from afar."""

from __future__ import annotations

from typing import assert_never

from ...kvlayer.clock import Timestamp
from ...kvlayer.errors import WriteConflict
from ...kvlayer.remote import messages
from ...kvlayer.savepoint import Savepoint
from ...kvlayer.span import Span
from ...kvlayer.transaction_modes import LockMode, WhenLocked
from .connections import ServedTransaction


async def operate(served: ServedTransaction, operation: messages.Operation) -> object:
    """Carries it out, and returns what is sent back. Raises KVError."""
    transaction = served.transaction
    match operation:
        case messages.Get(key=key):
            return await transaction.get(key)
        case messages.GetEach(keys=keys):
            return await transaction.get_each(keys)
        case messages.FirstExisting(keys=keys):
            return await transaction.first_existing(keys)
        case messages.GetForUpdate(key=key):
            return await transaction.get(key, for_update=True)
        case messages.GetWithTimestamp(key=key):
            return await transaction.get_with_timestamp(key)
        case messages.ScanRows(span=span, limit=limit, reverse=reverse, when_locked=when):
            return await transaction.scan(
                Span(*span), limit=limit, reverse=reverse, when_locked=WhenLocked(when)
            )
        case messages.Lock(keys=keys, mode=mode, when_locked=when):
            return await transaction.lock(keys, mode=LockMode(mode), when_locked=WhenLocked(when))
        case messages.Unlock(keys=keys, mode=mode):
            await transaction.unlock(keys, mode=LockMode(mode))
        case messages.Insert(keys=keys, bodies=bodies):
            return await transaction.insert(keys, bodies)
        case messages.Put(keys=keys, bodies=bodies):
            await transaction.put(keys, bodies)
        case messages.Delete(keys=keys):
            await transaction.delete(keys)
        case messages.Commit(deadline=deadline, commit_called_ns=called_ns):
            return await _commit(served, deadline, called_ns)
        case messages.Rollback():
            await transaction.rollback()
        case _:
            return await _mark(served, operation)
    return None


async def _mark(
    served: ServedTransaction,
    operation: messages.BeginStatement
    | messages.MakeSavepoint
    | messages.LookAgain
    | messages.Release
    | messages.RollbackTo,
) -> object:
    """Statements and savepoints; a savepoint is known to the node by its sequence."""
    transaction, savepoints = served.transaction, served.savepoints
    match operation:
        case messages.BeginStatement():
            await transaction.begin_statement()
        case messages.MakeSavepoint():
            return _keep(served, await transaction.savepoint())
        case messages.LookAgain(savepoint=number, key=key):
            again = await transaction.look_again(savepoints[number], WriteConflict(key))
            _forget_from(served, number)
            return _keep(served, again)
        case messages.Release(savepoint=number):
            await transaction.release(savepoints[number])
            _forget_from(served, number)
        case messages.RollbackTo(savepoint=number):
            await transaction.rollback_to(savepoints[number])
            _forget_from(served, number + 1)
        case _:
            assert_never(operation)
    return None


def _keep(served: ServedTransaction, savepoint: Savepoint) -> int:
    served.savepoints[savepoint.sequence] = savepoint
    return savepoint.sequence


def _forget_from(served: ServedTransaction, sequence: int) -> None:
    for number in [number for number in served.savepoints if number >= sequence]:
        del served.savepoints[number]


async def _commit(
    served: ServedTransaction, deadline: Timestamp | None, called_ns: int
) -> Timestamp:
    if deadline is None:
        return await served.transaction.commit(commit_called_ns=called_ns)
    return await served.transaction.commit(deadline=lambda: deadline, commit_called_ns=called_ns)
