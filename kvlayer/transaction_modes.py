"""The modes of a transaction: how isolated it is, and whom it may push."""

from __future__ import annotations

from enum import Enum, IntEnum


class Isolation(Enum):
    """How much a transaction sees of those beside it. The value is SQL's word for it."""

    SERIALIZABLE = "serializable"
    """As if alone: everything read still holds at the commit timestamp, or the commit fails."""

    REPEATABLE_READ = "repeatable read"
    """Snapshot isolation: reads stand at one timestamp, and of two that write one key the first to
    commit wins. What was only read may have changed by the commit, so write skew is possible."""

    READ_COMMITTED = "read committed"
    """Each statement reads at a timestamp of its own. A key that changed since sends the statement
    back (`WriteConflict`) to look again, and never the transaction."""


class Priority(IntEnum):
    """The order of giving way: a transaction pushes one of lower priority instead of waiting for
    it."""

    LOW = 1
    NORMAL = 2
    HIGH = 3


class LockMode(Enum):
    """The modes of a row's lock. Two transactions may share a key; SHARED and EXCLUSIVE exclude."""

    SHARED = "shared"
    EXCLUSIVE = "exclusive"


class WhenLocked(Enum):
    """The handling of a row that another transaction has locked."""

    WAIT = "wait"
    NOWAIT = "nowait"  # LockUnavailable at once
    SKIP = "skip locked"  # as if the row were not there
