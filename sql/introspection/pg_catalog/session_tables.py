"""Tables of sessions: pg_locks, and the own pg_prepared_statements and pg_cursors."""

from __future__ import annotations

from collections.abc import Sequence

from ....kvlayer.transaction_modes import LockMode
from ...results.results import Row
from ...runtime.activity import shown
from ...runtime.introspection_context import IntrospectionContext
from ..type_rows import type_words

_MODES = {LockMode.EXCLUSIVE: "ExclusiveLock", LockMode.SHARED: "ShareLock"}


async def lock_rows(context: IntrospectionContext) -> Sequence[Row]:
    """The advisory locks of this node's sessions. Rows that are locked are in none of
    PostgreSQL's tables either, and tables are not locked."""
    return [
        (
            "advisory", lock.key.database_id, None, None, None, None, None, lock.key.high,
            lock.key.low, len(lock.key.numbers), None, session.activity.process_id,
            _MODES[lock.mode], lock.granted, False, None,
        )
        for session in context.services.sessions
        for lock in session.advisory_locks
    ]  # fmt: skip


async def prepared_rows(context: IntrospectionContext) -> Sequence[Row]:
    """By name. Plans are kept by text, whoever prepares it, so none is a statement's own."""
    session = context.session
    named = () if session is None else session.prepared_names
    return [
        (
            found.name, shown(found.text), found.prepared_at,
            [type_words(type) for type in found.parameter_types], found.from_sql, None, None,
        )
        for found in named
    ]  # fmt: skip


async def cursor_rows(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of pg_cursors: the open cursors of the session."""
    session = context.session
    cursors = () if session is None else session.cursors
    return [
        (found.name, found.text, found.hold, False, found.scroll, found.declared_at)
        for found in cursors
    ]
