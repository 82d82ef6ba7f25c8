"""Tables of sessions: pg_stat_activity of this node, and pg_settings of one's own."""

from __future__ import annotations

from ....catalog.rights.privileges import SYSTEM, Privilege
from ....catalog.rights.rights import read_rights
from ...analyze.calls.oids import user_oid
from ...results.results import Row
from ...runtime.activity import SessionView, shown
from ...variables.variables import APPLICATION_NAME, REGISTRY
from ..virtual_table import PG_CATALOG, IntrospectionContext, Rows


@PG_CATALOG.table("""pg_settings 16
    name setting unit category short_desc extra_desc context vartype source min_val max_val
    enumvals:S boot_val reset_val sourcefile sourceline:i pending_restart:b""")
async def setting_rows(context: IntrospectionContext) -> Rows:
    variables = context.variables
    for variable in REGISTRY.values():
        kind = "bool" if isinstance(variable.default, bool) else "string"
        yield (
            variable.title or variable.name, variables.show(variable), None, "Session",
            variable.description, None, "internal" if variable.parse is None else "user", kind,
            variables.source(variable), None, None, None, variable.show(variable.default),
            variables.reset_text(variable), None, None, False,
        )  # fmt: skip


_HIDDEN = "<insufficient privilege>"


@PG_CATALOG.table("""pg_stat_activity 41
    datid:o datname pid:i leader_pid:i usesysid:o usename application_name client_addr
    client_hostname client_port:i backend_start:t xact_start:t query_start:t state_change:t
    wait_event_type wait_event state backend_xid:i backend_xmin:i query_id:i query backend_type""")
async def activity_rows(context: IntrospectionContext) -> Rows:
    """In the order in which the sessions began."""
    databases = dict(await context.services.catalog.descriptors.children(context.reader, 0, 0))
    rights = await read_rights(context.reader)
    everything = bool(rights.held(context.user, SYSTEM) & Privilege.VIEWACTIVITY)
    for session in context.services.sessions:
        yield _row(
            session,
            databases.get(session.database),
            everything or session.activity.user == context.user,
        )


def _row(session: SessionView, database_id: int | None, open_to_see: bool) -> Row:
    activity = session.activity
    known: Row = (
        database_id, session.database, activity.process_id, None, user_oid(activity.user),
        activity.user, session.variables.get(APPLICATION_NAME),
    )  # fmt: skip
    if not open_to_see:
        return (*known, *[None] * 13, _HIDDEN, None)
    running = activity.text is not None
    return (
        *known, activity.client_address or None, None, None, activity.began,
        session.transaction_opened_at, activity.text_began, None,
        None, None, "active" if running else session.state.value, None, None, None,
        shown(activity.text if running else activity.last_text), "client backend",
    )  # fmt: skip
