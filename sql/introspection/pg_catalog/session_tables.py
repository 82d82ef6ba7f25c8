"""Tables of sessions: pg_locks; and what is the own session's: pg_prepared_statements, pg_cursors
and pg_settings."""

from __future__ import annotations

from collections.abc import Sequence

from ....kvlayer.transaction_modes import LockMode
from ...results.results import Row
from ...runtime.activity import shown
from ...runtime.introspection_context import IntrospectionContext
from ...variables.variables import REGISTRY, SessionVariables, Variable
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


async def setting_rows(context: IntrospectionContext) -> Sequence[Row]:
    return [_setting_row(variable, context.variables) for variable in REGISTRY.values()]


def _setting_row(variable: Variable[object], variables: SessionVariables) -> Row:
    boot = variable.show(variable.default)
    context = "internal" if variable.parse is None else "user"
    kind = "bool" if isinstance(variable.default, bool) else "string"
    return (
        variable.title or variable.name, variables.show(variable), None, "Session",
        variable.description, None, context, kind, variables.source(variable), None, None, None,
        boot, variables.reset_text(variable), None, None, False,
    )  # fmt: skip
