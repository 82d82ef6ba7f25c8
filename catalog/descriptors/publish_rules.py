"""Rules of which version may follow which: those that need nothing but the two versions.

The lock's rules are what the low-latency changefeed stands on. A locked version is logically equal
to its predecessor and its successor because

1. a version that changes the lock bit changes nothing else, and
2. a locked descriptor is followed by nothing but its unlocking, or by a version that is logically
   equal to it (a comment, a foreign key that goes, or the job that will unlock it).
"""

from __future__ import annotations

from ...kvlayer.errors import RetryableTransaction
from ..values.errors import SQLError
from .descriptor import Descriptor, TableDescriptor, logically_equal
from .names import quote_identifier
from .relaxed_tables import refuse_other_writers
from .system_tables import FIRST_USER_ID

LOCK_PARAMETER = "changefeed_optimized"

COLUMNS_MAX = 1600
"""Columns of a table, as in PostgreSQL."""

LOCK_ALONE = "25001"
"""The SQLSTATE of a lock change that does not stand alone: active_sql_transaction, which PostgreSQL
uses for what must be a transaction of its own."""


class StaleDescriptor(RetryableTransaction):
    """The descriptor to publish was made from a version that is no longer the newest."""


def check_successor(before: Descriptor | None, after: Descriptor) -> None:
    """Raises where `after` may not be the version that follows `before` (None: there is none)."""
    if after.id < FIRST_USER_ID:
        raise SQLError("42501", f'permission denied: "{after.name}" is part of the system')
    if before is None:
        if after.version != 1:
            raise StaleDescriptor(f"{after.name} ({after.id}) is gone: version 1 comes first")
        return
    assert type(before) is type(after), (before, after)
    if before.dropped:
        raise StaleDescriptor(f"{before.name} ({before.id}) was dropped")
    if after.version != before.version + 1:
        raise StaleDescriptor(
            f"{after.name} ({after.id}): version {after.version} does not follow "
            f"version {before.version}"
        )
    if isinstance(before, TableDescriptor) and isinstance(after, TableDescriptor):
        if after.dropped:
            refuse_other_writers(before)
        _check_lock(before, after)


def check_width(columns: int) -> None:
    """Raises SQLError 54011 for more columns than a table may have."""
    if columns > COLUMNS_MAX:
        raise SQLError("54011", f"tables can have at most {COLUMNS_MAX} columns")


def changes_lock(before: Descriptor | None, after: Descriptor) -> bool:
    """Whether publishing `after` locks or unlocks; a table created locked changes no lock."""
    return (
        isinstance(before, TableDescriptor)
        and isinstance(after, TableDescriptor)
        and before.locked != after.locked
    )


def changes_nothing(before: Descriptor | None, after: Descriptor) -> bool:
    """Whether `after` only says that a schema change's job has begun, or has ended, on a table."""
    return (
        isinstance(before, TableDescriptor)
        and isinstance(after, TableDescriptor)
        and before.locked == after.locked
        and before.schema_change_job != after.schema_change_job
        and logically_equal(before, after)
    )


def _check_lock(before: TableDescriptor, after: TableDescriptor) -> None:
    if before.locked and after.dropped:
        raise locked_error(before)
    if before.locked and after.locked and not logically_equal(before, after):
        raise locked_error(before)
    if before.locked != after.locked and not logically_equal(before, after):
        raise lock_not_alone(after)


def locked_error(table: TableDescriptor) -> SQLError:
    """The error of a schema change of a locked table."""
    return SQLError(
        "57000",
        f'schema changes are disallowed on table "{table.name}" because it is locked',
        detail=f"The storage parameter {LOCK_PARAMETER} is set.",
        hint=f"Run ALTER TABLE {quote_identifier(table.name)} RESET ({LOCK_PARAMETER}) as a "
        "transaction of its own first, and set it again afterwards.",
    )


def lock_not_alone(table: TableDescriptor) -> SQLError:
    """The error of a transaction that locks or unlocks a table and does anything else."""
    return SQLError(
        LOCK_ALONE,
        f'setting {LOCK_PARAMETER} of table "{table.name}" must be the only change of its '
        "transaction",
        hint=f"Run ALTER TABLE {quote_identifier(table.name)} SET ({LOCK_PARAMETER} = "
        f"{str(table.locked).lower()}) as a transaction of its own.",
    )
