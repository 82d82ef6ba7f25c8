"""Pushing: who need not wait for the transaction in its way."""

from __future__ import annotations

from ..transaction_modes import Isolation, Priority
from .host import TransactionHost
from .locks import LockConflict, Wish
from .record import TransactionRecord, TransactionStatus
from .resolution import abort, push


def push_aside(
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
