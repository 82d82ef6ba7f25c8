"""Transactions: serializable, whether they take one step or an hour.

A *transaction* reads at one timestamp and commits at one, unique in the store. A *one-phase*
transaction does everything in one step; an explicit one (`Transaction`) writes *intents* under
locks, has a *record* that says how it stands, and may have to *move* its write timestamp and
*refresh* its reads. A *push* moves it from outside. A *step* is a turn of the event loop in which
nothing else happens; conflicts are waited out between two runs of a step.

It promises serializability in timestamp order, and that nothing is told before it is durable.

Never knows: ranges, feeds, what keys and values mean. It sees the range through `TransactionHost`.
"""

from ..access import Evaluation, Pending, Transaction
from .host import TransactionHost
from .record import TransactionRecord, TransactionStatus
from .steps import LOCK_TIMEOUT

__all__ = [
    "LOCK_TIMEOUT",
    "Evaluation",
    "Pending",
    "Transaction",
    "TransactionHost",
    "TransactionRecord",
    "TransactionStatus",
]
