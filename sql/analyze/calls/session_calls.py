"""Calls that do something to sessions or keyspaces, or wait for something, once for each row of a
query's result.

    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ada'
    SELECT pg_try_advisory_lock(id), id FROM jobs ORDER BY id LIMIT 1
    SELECT wait_for_changefeed(7, NULL, '5s')
    SELECT raw_put('sessions', 'ada', 'signed in', '1h')

Nothing may call them twice, so they are no part of what DuckDB evaluates: they are items of the
outermost SELECT, and are called when its rows are there (`drawn_items`). What they do is told by
`sql.execute.admin.session_calls`; here is what they are called with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from ....catalog.values.column_types import ColumnType, Datum
from ....catalog.values.errors import SQLError
from ....catalog.values.type_kinds import CatalogName, TypeKind
from ...parse import position_of
from .client_functions import STORE_TIMESTAMP

INT8 = ColumnType(TypeKind.INT8)
BOOL = ColumnType(TypeKind.BOOL)
STRING = ColumnType(TypeKind.STRING)
BYTES = ColumnType(TypeKind.BYTES)
VOID = ColumnType(TypeKind.STRING, catalog_name=CatalogName.VOID)


@dataclass(frozen=True, slots=True)
class SessionFunction:
    """One of these functions: how many arguments it takes, and their types: integers, where
    `arguments` says nothing else. It is NULL of NULL, but where it is said to be `lenient`."""

    result: ColumnType
    counts: tuple[int, ...]
    arguments: tuple[ColumnType, ...] = (INT8, INT8)
    lenient: bool = False

    def argument(self, place: int) -> ColumnType:
        """The type of one of the arguments."""
        return self.arguments[place]


class SessionCalls(Protocol):
    """Carries calls out, for one statement."""

    async def call(self, name: str, arguments: Sequence[Datum]) -> Datum:
        """Returns the function's result. Raises SQLError."""
        ...


_LOCKED = SessionFunction(VOID, (1, 2))
_TRIED = SessionFunction(BOOL, (1, 2))

FUNCTIONS = {
    "pg_cancel_backend": SessionFunction(BOOL, (1,)),
    "pg_terminate_backend": SessionFunction(BOOL, (1, 2)),
    "pg_advisory_lock": _LOCKED,
    "pg_advisory_lock_shared": _LOCKED,
    "pg_advisory_xact_lock": _LOCKED,
    "pg_advisory_xact_lock_shared": _LOCKED,
    "pg_try_advisory_lock": _TRIED,
    "pg_try_advisory_lock_shared": _TRIED,
    "pg_try_advisory_xact_lock": _TRIED,
    "pg_try_advisory_xact_lock_shared": _TRIED,
    "pg_advisory_unlock": _TRIED,
    "pg_advisory_unlock_shared": _TRIED,
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


def session_function(tree: exp.Expr) -> SessionFunction | None:
    """The function that a node calls, if it is one of these. Raises SQLError 42883 for a wrong
    number of arguments."""
    if not isinstance(tree, exp.Anonymous):
        return None
    name = tree.name.lower()
    found = FUNCTIONS.get(name)
    if found is not None and len(tree.expressions) not in found.counts:
        raise SQLError(
            "42883",
            f"function {name} takes another number of arguments",
            position=position_of(tree),
            hint=f"It takes {' or '.join(map(str, found.counts))}.",
        )
    return found


def refuse_session_call(node: exp.Expr) -> None:
    """Raises SQLError 0A000 for such a call that is left in what DuckDB would evaluate."""
    if session_function(node) is not None:
        raise SQLError(
            "0A000",
            f"{node.name.lower()} cannot be called here",
            position=position_of(node),
            hint="Call it as an item of the outermost SELECT, beside no DISTINCT.",
        )
