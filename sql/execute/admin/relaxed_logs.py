"""SHOW RELAXED LOGS."""

from __future__ import annotations

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.relaxed.logs import RelaxedLog, list_logs
from ....catalog.rights.privileges import securable
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor
from ..write.relaxed_load import domain_states

COLUMNS = typed_columns("log_name tables domain last_cut pending_events:i open_epoch gaps")


async def show_relaxed_logs(actor: Actor) -> Result:
    """Lists the logs, a row for each domain, and one row for a log without domains. A user sees
    the logs on each of whose tables it has a right."""
    rows: list[Row] = []
    for log in await list_logs(actor.reader):
        names = await _tables(actor, log)
        if names is None:
            continue
        states = await domain_states(actor.services, actor.reader, log)
        if not states:
            rows.append((log.name, names, None, None, 0, None, None))
        for state in states:
            cut = None if state.position is None else f"{state.position:016x}"
            gaps = "; ".join(map(str, state.gaps)) or None
            domain = f"{state.domain:016x}"
            open_epoch = f"{state.open_since:016x}" if state.open_since is not None else None
            rows.append((log.name, names, domain, cut, state.pending, open_epoch, gaps))
    return listing("SHOW RELAXED LOGS", COLUMNS, rows)


async def _tables(actor: Actor, log: RelaxedLog) -> str | None:
    """The names of the log's tables; None where its user may not know of them."""
    admin, rights = await actor.admin(), await actor.rights()
    names = []
    for table_id in log.table_ids:
        table = await actor.services.catalog.descriptors.read(actor.reader, table_id)
        assert isinstance(table, TableDescriptor), table_id
        if not admin and not rights.held(actor.user, securable(table)):
            return None
        names.append(table.name)
    return ", ".join(names)
