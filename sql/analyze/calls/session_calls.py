"""Calls that do something to sessions or keyspaces, or wait for something, once for each row of a
query's result.

    SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'ada'
    SELECT pg_try_advisory_lock(id), id FROM jobs ORDER BY id LIMIT 1
    SELECT wait_for_changefeed(7, NULL, '5s')
    SELECT raw_put('sessions', 'ada', 'signed in', '1h')

Nothing may call them twice, so they are no part of what DuckDB evaluates: they are items of the
outermost SELECT, and are called when its rows are there (`drawn_items`). What they do is told by
`sql.execute.admin.session_calls`, and `sql.builtins.session_functions` what they are called with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from ....catalog.values.column_types import Datum
from ...builtins.session_functions import SESSION_FUNCTIONS, SessionFunction
from ...syntax.refusals import error_at


class SessionCalls(Protocol):
    """Carries calls out, for one statement."""

    async def call(self, name: str, arguments: Sequence[Datum]) -> Datum:
        """Returns the function's result. Raises SQLError."""
        ...


def session_function(tree: exp.Expr) -> SessionFunction | None:
    """The function that a node calls, if it is one of these. Raises SQLError 42883 for a wrong
    number of arguments."""
    if not isinstance(tree, exp.Anonymous):
        return None
    name = tree.name.lower()
    found = SESSION_FUNCTIONS.get(name)
    if found is not None and len(tree.expressions) not in found.counts:
        raise error_at(
            tree,
            "42883",
            f"function {name} takes another number of arguments",
            f"It takes {' or '.join(map(str, found.counts))}.",
        )
    return found


def refuse_session_call(node: exp.Expr) -> None:
    """Raises SQLError 0A000 for such a call that is left in what DuckDB would evaluate."""
    if session_function(node) is not None:
        raise error_at(
            node,
            "0A000",
            f"{node.name.lower()} cannot be called here",
            "Call it as an item of the outermost SELECT, beside no DISTINCT.",
        )
