"""Messages of schema changes, for feeds WITH schema_events.

    {"schema_change": {"after": {"columns": [{"name": "a", "nullable": false, "type": "INT8"}],
     "primary_key": ["a"], "table": "t"}, "before": …, "kinds": ["DROP_COLUMN"]}, "updated": "…"}

A change of a lock, or of what no message shows, has none.
"""

from __future__ import annotations

import msgspec

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.clock import format_timestamp
from ...schemafeed.table_events import LOCK_CHANGES, EventKind, TableEvent

_UNSEEN = LOCK_CHANGES | EventKind.OTHER


def schema_message(event: TableEvent) -> bytes | None:
    """The message, or None where nothing changed that a message shows."""
    kinds = event.kinds & ~_UNSEEN
    if not kinds:
        return None
    change = {
        "after": _schema(event.after),
        "before": _schema(event.before),
        "kinds": [str(kind.name) for kind in EventKind if kind in kinds],
    }
    said = {"schema_change": change, "updated": format_timestamp(event.timestamp)}
    return msgspec.json.encode(said, order="sorted")


def _schema(table: TableDescriptor) -> dict[str, object]:
    return {
        "columns": [
            {"name": each.name, "nullable": each.nullable, "type": each.type.sql_name}
            for each in table.shown_columns
        ],
        "primary_key": [each.name for each in table.key_columns],
        "table": table.name,
    }
