"""Arguments of statements and calls about raw keyspaces: a keyspace, and a time to live."""

from __future__ import annotations

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ...catalog.values.interval_text import read_interval
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ...kvlayer.leadership import Role
from ...kvlayer.raw import TTL_SECONDS_MAX, keyspace_span
from ...kvlayer.replica import Look
from ..syntax.names import ObjectName

_MICROSECONDS = 1_000_000


def whole_seconds(text: str | None, position: int | None = None) -> int:
    """A time to live. Raises SQLError 22023 where it is none, or out of range."""
    try:
        seconds = read_interval(text or "").length / _MICROSECONDS
    except SQLError as error:
        raise SQLError("22023", f"ttl: {error.message}", position=position) from error
    if not 1 <= seconds <= TTL_SECONDS_MAX or seconds != int(seconds):
        raise SQLError(
            "22023",
            f"ttl {text!r} is out of range",
            hint=f"A time to live is whole seconds, from 1 to {TTL_SECONDS_MAX}: '90s', '1h'.",
            position=position,
        )
    return int(seconds)


def check_keyspace(table: TableDescriptor, name: ObjectName | str) -> None:
    """Raises SQLError 42809 where the name is that of a table or a view."""
    if table.keyspace is None:
        kind = "table" if table.view is None else "view"
        raise SQLError(
            "42809",
            f'"{name}" is a {kind}, not a keyspace',
            hint="SHOW KEYSPACES lists the keyspaces.",
            position=name.position if isinstance(name, ObjectName) else None,
        )


async def replica_resolved(
    store: StoreAccess, table: TableDescriptor, name: ObjectName
) -> Timestamp | None:
    """Returns the resolved timestamp of a replica; None for a keyspace that is written here. Raises
    SQLError 55000 for a replica that has resolved nothing yet."""
    assert table.keyspace is not None, table
    state = await store.replica(keyspace_span(table.id), Look())
    leads = not table.keyspace.replica if state is None else state.role is Role.LEADING
    if leads:
        return None
    if state is None or not state.resolved:
        raise SQLError(
            "55000",
            f'keyspace "{name}" is a replica that has resolved nothing of its source yet',
            hint="SHOW KEYSPACES tells when it has.",
            position=name.position,
        )
    return state.resolved
