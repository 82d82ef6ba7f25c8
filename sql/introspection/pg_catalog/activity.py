"""pg_stat_activity: the sessions of this node.

Of other users' sessions one sees that they are there, and with VIEWACTIVITY what they do.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.rights.rights import read_rights
from ...analyze.calls.oids import user_oid
from ...results.results import Row
from ...runtime.activity import SessionView, shown
from ...runtime.introspection_context import IntrospectionContext

_HIDDEN = "<insufficient privilege>"

_IDLE = {
    "NoTxn": "idle",
    "Open": "idle in transaction",
    "CommitWait": "idle in transaction",
    "Aborted": "idle in transaction (aborted)",
}
"""States of sessions that run nothing, by those of their transactions."""


async def activity_rows(context: IntrospectionContext) -> Sequence[Row]:
    """In the order in which the sessions began."""
    databases = dict(await context.services.catalog.descriptors.children(context.reader, 0, 0))
    rights = await read_rights(context.reader)
    everything = bool(rights.held(context.user, SYSTEM) & Privilege.VIEWACTIVITY)
    return [
        _row(session, databases.get(session.database), everything or _own(session, context))
        for session in context.services.sessions
    ]


def _own(session: SessionView, context: IntrospectionContext) -> bool:
    return session.activity.user == context.user


def _awaited(session: SessionView) -> tuple[str | None, str | None]:
    """wait_event_type and wait_event, which are known of advisory locks."""
    waits = any(not lock.granted for lock in session.advisory_locks)
    return ("Lock", "advisory") if waits else (None, None)


def _row(session: SessionView, database_id: int | None, open_to_see: bool) -> Row:
    activity = session.activity
    known: Row = (
        database_id, session.database, activity.process_id, None, user_oid(activity.user),
        activity.user, session.application_name,
    )  # fmt: skip
    if not open_to_see:
        return (*known, *[None] * 13, _HIDDEN, None)
    running = activity.text is not None
    return (
        *known,
        activity.client_address or None,
        None,
        None,
        activity.began,
        session.transaction_opened_at,
        activity.text_began,
        None,
        *_awaited(session),
        "active" if running else _IDLE[session.transaction_status],
        None,
        None,
        None,
        shown(activity.text if running else activity.last_text),
        "client backend",
    )
