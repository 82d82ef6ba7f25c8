"""Schema steps: how a mirror table follows its source from one version to the next.

    ADD COLUMN extra INT8 DEFAULT 7    ALTER TABLE base ADD COLUMN c3 BIGINT DEFAULT 7
    RENAME COLUMN note TO remark       the view shows c2 AS remark
    DROP COLUMN remark                 ALTER TABLE base DROP COLUMN c2
    ALTER COLUMN … TYPE                the new column beside the old one, which goes
    TRUNCATE                           DELETE FROM base
    ALTER PRIMARY KEY                  another base table, shown when it is complete

Columns are known by id, so that a rename is a rename. A column that was rewritten in the source is
NULL here until the backfill has brought its rows; the feed resolves nothing before that.

Rows under another primary key have no place in the table as it is. They gather in a base table of
their own, and the view goes on showing the old one, which stays as of just below the change, as
does the feed's resolved timestamp. When that passes the change, the view is turned over and the old
table dropped, in the transaction that says so.
"""

from __future__ import annotations

from datetime import datetime

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.column_types import ColumnType, Datum
from ....catalog.values.interval import Interval
from ....catalog.values.type_kinds import TEXTS
from ....schemafeed.table_events import EventKind, TableEvent
from ..mirror.gathered import SchemaStep
from .table_schema import SCHEMA, TableSchema, quoted, view_of

Step = SchemaStep[TableSchema, str]
"""The statements of one schema event for a mirror table in DuckDB."""


def same_shape(before: TableDescriptor, after: TableDescriptor) -> bool:
    """Whether nothing of the change shows in a mirror."""
    return (
        [(c.id, c.name, c.type.mirror_name) for c in before.visible_columns]
        == [(c.id, c.name, c.type.mirror_name) for c in after.visible_columns]
        and before.primary_key == after.primary_key
        and before.primary_index_id == after.primary_index_id
    )


def plan_step(before: TableSchema, event: TableEvent, *, staged: bool) -> Step:
    """Returns the statements that take the mirror table of `before` over `event`. Raises
    SinkRefused.

    `staged` tells that its rows gather already, unseen, for an earlier event.
    """
    after = event.after
    if event.before.primary_key != after.primary_key:
        place = before.renewed(after, base_name=f"{before.first_base_name}_v{after.version}")
        return SchemaStep(
            before=before,
            after=place,
            statements=[place.create_base()],
            floor=True,
            staged_at=event.timestamp,
        )
    renewed = before.renewed(after, base_name=before.base_name)
    emptied = EventKind.TRUNCATE in event.kinds
    statements = [f"DELETE FROM {before.base}"] if emptied else []
    statements += _column_changes(before, renewed)
    if not staged and before.view() != renewed.view():
        statements.insert(0, f"DROP VIEW {view_of(before.name)}")
        statements.append(renewed.view())
    return SchemaStep(before=before, after=renewed, statements=statements, floor=emptied)


def turn_over(shown: str, table: TableSchema) -> list[str]:
    """The statements that show a base table that is complete, in place of another."""
    return [
        f"DROP VIEW {view_of(table.name)}",
        table.view(),
        f"DROP TABLE {SCHEMA}.{quoted(shown)}",
    ]


def _column_changes(before: TableSchema, after: TableSchema) -> list[str]:
    old = {column.id: column for column in before.descriptor.visible_columns}
    new = {column.id: column for column in after.descriptor.visible_columns}
    statements: list[str] = []
    for column in new.values():
        if column.id not in old:
            add = f"ALTER TABLE {before.base} ADD COLUMN c{column.id} {column.type.mirror_name}"
            if column.missing is not None:
                add += f" DEFAULT {literal(column.type, column.missing)}"
            statements.append(add)
        elif column.type.mirror_name != old[column.id].type.mirror_name:
            statements.append(
                f"ALTER TABLE {before.base} ALTER COLUMN c{column.id} "
                f"TYPE {column.type.mirror_name}"
            )
    gone = old.keys() - new.keys()
    return statements + [f"ALTER TABLE {before.base} DROP COLUMN c{id}" for id in sorted(gone)]


def literal(type: ColumnType, value: Datum) -> str:
    """A value as DuckDB reads it in SQL, cast to its type: DDL takes no parameters."""
    if value is None:
        return "NULL"
    if isinstance(value, list):
        assert type.element is not None, type
        items = ", ".join(literal(type.element, item) for item in value)
        return f"CAST([{items}] AS {type.mirror_name})"
    if isinstance(value, bytes):
        text = "".join(f"\\x{byte:02X}" for byte in value)
    elif isinstance(value, datetime):
        text = value.isoformat(sep=" ")
    elif isinstance(value, Interval):
        text = value.fields
    elif isinstance(value, float):
        text = repr(value)
    else:
        text = str(value)
    if type.kind in TEXTS and "\x00" in text:
        parts = [_quoted_text(part) for part in text.split("\x00")]
        return f"({' || chr(0) || '.join(parts)})"
    return f"CAST({_quoted_text(text)} AS {type.mirror_name})"


def _quoted_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
