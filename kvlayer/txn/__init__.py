"""Transactions: serializable or as weak as asked for, whether they take one step or an hour.

A *transaction* reads at one timestamp and commits at one, unique in the store. A *one-phase*
transaction does everything in one step; an explicit one (`Transaction`) holds its writes in a
*buffer* under locks and commits them as one phase; what outgrows the buffer are *intents*, and it
has a *record* then that says how it stands. It may have to *move* its write timestamp and *refresh*
its reads. A *push* moves or aborts it from outside. A *savepoint* is a moment to which it can go
back. A *step* is a turn of the event loop in which nothing else happens; conflicts are waited out
between two runs of a step.

It promises the isolation that was asked for (`Isolation`): serializability in timestamp order
unless it was less; and that nothing is told before it is durable.

Never knows: ranges, feeds, what keys and values mean. It sees the range through `TransactionHost`.
"""

from ..access import Evaluation, Pending, Transaction
from ..savepoint import Savepoint
from ..transaction_modes import Isolation, LockMode, Priority
from .record import TransactionRecord, TransactionStatus

__all__ = [
    "Evaluation",
    "Isolation",
    "LockMode",
    "Pending",
    "Priority",
    "Savepoint",
    "Transaction",
    "TransactionRecord",
    "TransactionStatus",
]
