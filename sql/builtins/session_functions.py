"""Functions that do something to sessions or keyspaces, or wait for something, and their types.

How they are called: `sql.analyze.calls.row_calls`; what they do:
`sql.execute.admin.session_calls`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.values.column_types import BOOL, BYTES, INT8, STRING, ColumnType
from ...catalog.values.type_kinds import CatalogName, TypeKind

VOID = ColumnType(TypeKind.STRING, catalog_name=CatalogName.VOID)


@dataclass(frozen=True, slots=True)
class SessionFunction:
    """One of these functions: how many arguments it takes, and their types: integers, where
    `arguments` says nothing else. It is NULL of NULL, but where it is said to be `lenient`."""

    result: ColumnType
    counts: tuple[int, ...]
    arguments: tuple[ColumnType, ...] = (INT8,)
    lenient: bool = False

    def argument(self, place: int) -> ColumnType:
        """The type of one of the arguments."""
        return self.arguments[place]


STORE_TIMESTAMP = ColumnType(TypeKind.DECIMAL, precision=38, scale=10)
"""The SQL type of the store's timestamps: Unix nanoseconds, and the counter behind the point."""

SESSION_FUNCTIONS = {
    "pg_cancel_backend": SessionFunction(BOOL, (1,)),
    "pg_terminate_backend": SessionFunction(BOOL, (1,)),
    "pg_advisory_lock": SessionFunction(VOID, (1,)),
    "pg_advisory_xact_lock": SessionFunction(VOID, (1,)),
    "pg_try_advisory_lock": SessionFunction(BOOL, (1,)),
    "pg_try_advisory_xact_lock": SessionFunction(BOOL, (1,)),
    "pg_advisory_unlock": SessionFunction(BOOL, (1,)),
    "pg_advisory_unlock_all": SessionFunction(VOID, (0,)),
    "wait_for_changefeed": SessionFunction(
        STORE_TIMESTAMP, (1, 2, 3), (INT8, STRING, STRING), lenient=True
    ),
    "raw_get": SessionFunction(BYTES, (2,), (STRING, BYTES)),
    "raw_put": SessionFunction(STORE_TIMESTAMP, (3, 4), (STRING, BYTES, BYTES, STRING)),
    "raw_delete": SessionFunction(STORE_TIMESTAMP, (2,), (STRING, BYTES)),
    "raw_delete_range": SessionFunction(INT8, (3,), (STRING, BYTES, BYTES), lenient=True),
    "raw_cas": SessionFunction(BOOL, (4,), (STRING, BYTES, BYTES, BYTES), lenient=True),
}
