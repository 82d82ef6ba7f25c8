"""The enriched envelope: what a change is, where it comes from, and of which types it is.

    {"after": {"id": 1}, "op": "c", "ts_ns": 17…}            op: c, u, d; ts_ns: when it was encoded
    … "before": {"id": 0}                                    with `diff`
    … "key": {"id": 1}                                       with `key_in_value`
    … "source": {"job_id": "12", "table_name": "t", …}       enriched_properties = 'source'
    {"payload": {the above}, "schema": {…}}                  enriched_properties = 'schema'

A message's key is an object too, with its schema where values have theirs. `source` has `ts_hlc`
and `ts_ns` with `updated`, and `mvcc_timestamp` where that is asked for. A schema is one of Kafka
Connect's in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import msgspec

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.column_types import ColumnType
from ...catalog.values.type_kinds import FLOATS, INTEGERS, TypeKind
from ...kvlayer.clock import Timestamp, format_timestamp
from ..contract.options import ChangefeedOptions
from .json_texts import Texts
from .topics import name_parts

ORIGIN = "tailrace"
"""The origin of changes: the one value in which this envelope differs from CockroachDB's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOrigin:
    """The feed as `source` describes it: `sink` is CockroachDB's word for its kind. A feed without
    a job has `job_id` 0."""

    sink: str
    cluster_id: str
    job_id: int
    node_id: int
    unix_us: Callable[[], int]
    version: str = f"v{version('tailrace')}"


def source_constants(
    origin: FeedOrigin, table: TableDescriptor, full_name: str | None
) -> dict[str, Texts]:
    """The fields of `source` that all changes of a table share, as JSON."""
    database, schema, name = name_parts(full_name) if full_name else ("", "", table.name)
    shared: dict[str, object] = {
        "changefeed_sink": origin.sink,
        "cluster_id": origin.cluster_id,
        "cluster_name": "",
        "database_name": database,
        "db_version": origin.version,
        "job_id": str(origin.job_id),
        "node_id": str(origin.node_id),
        "node_name": "",
        "origin": ORIGIN,
        "primary_keys": [column.name for column in table.key_columns],
        "schema_name": schema,
        "source_node_locality": "",
        "table_name": name,
    }
    return {field: msgspec.json.encode(value) for field, value in shared.items()}


def nanoseconds(timestamps: Sequence[Timestamp]) -> Texts:
    """The wall time of timestamps, as numbers."""
    return [format_timestamp(at).partition(".")[0].encode() for at in timestamps]


def moments(unix_us: int, count: int) -> list[bytes]:
    """When each of so many messages was made, as nanoseconds of different numbers: to readers such
    as Debezium's connector two messages of one table and one moment are one, sent twice."""
    first = unix_us * 1000
    return [b"%d" % at for at in range(first, first + count)]


def operations(deleted: Sequence[bool], previous: Sequence[object] | None) -> list[bytes]:
    """The operation of each change: `c` where it replaced nothing."""
    before = [None] * len(deleted) if previous is None else previous
    return [
        b'"d"' if gone else b'"c"' if replaced is None else b'"u"'
        for gone, replaced in zip(deleted, before, strict=True)
    ]


# Schemas

Schema = dict[str, Any]


def key_schema(table: TableDescriptor, topic: str) -> Schema:
    fields = [_column(column.name, column.type, nullable=False) for column in table.key_columns]
    return _struct(f"{topic}.key", fields)


def value_schema(table: TableDescriptor, topic: str, options: ChangefeedOptions) -> Schema:
    """The schema of a whole payload, its fields in CockroachDB's order."""
    columns = [
        _column(column.name, column.type, nullable=column.nullable)
        for column in table.visible_columns
        if not column.hidden
    ]
    fields = []
    if options.diff:
        fields.append({"field": "before", **_struct(f"{topic}.before.value", columns, True)})
    fields.append({"field": "after", **_struct(f"{topic}.after.value", columns)})
    if options.source:
        fields.append({"field": "source", **_source_schema()})
    if options.key_in_value:
        fields.append({"field": "key", **key_schema(table, topic)})
    fields.append({"field": "ts_ns", "optional": False, "type": "int64"})
    fields.append({"field": "op", "optional": False, "type": "string"})
    return _struct("cockroachdb.envelope", fields)


def encoded(schema: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(schema, order="sorted")


_SOURCE_TEXTS = (
    "changefeed_sink", "cluster_id", "cluster_name", "database_name", "db_version", "job_id",
    "node_id", "node_name", "origin", "schema_name", "source_node_locality", "table_name",
)  # fmt: skip


def _source_schema() -> Schema:
    text = {"optional": False, "type": "string"}
    fields: list[Schema] = [{"field": name, **text} for name in _SOURCE_TEXTS]
    fields += [
        {"field": "primary_keys", "items": text, "optional": False, "type": "array"},
        {"field": "mvcc_timestamp", "optional": True, "type": "string"},
        {"field": "ts_hlc", "optional": True, "type": "string"},
        {"field": "ts_ns", "optional": True, "type": "int64"},
    ]
    return _struct("cockroachdb.source", fields, True)


def _struct(name: str, fields: Sequence[Schema], optional: bool = False) -> Schema:
    return {"name": name, "fields": list(fields), "optional": optional, "type": "struct"}


def _column(name: str, type: ColumnType, *, nullable: bool) -> Schema:
    return {"field": name, **_type(type), "optional": nullable}


def _type(type: ColumnType) -> Schema:
    if type.element is not None:
        return {"type": "array", "items": {**_type(type.element), "optional": False}}
    if type.kind in INTEGERS:
        return {"type": "int64"}
    if type.kind in FLOATS:
        return {"type": "float64"}
    if type.kind is TypeKind.DECIMAL:
        digits = {"precision": str(type.precision), "scale": str(type.scale)}
        return {"type": "float64", "name": "decimal", "parameters": digits}
    return _TYPES.get(type.kind, {"type": "string"})


_TYPES: dict[TypeKind, Schema] = {
    TypeKind.BOOL: {"type": "boolean"},
    TypeKind.BYTES: {"type": "bytes"},
    TypeKind.DATE: {"type": "string", "name": "date"},
    TypeKind.TIME: {"type": "string", "name": "time"},
    TypeKind.TIMESTAMP: {"type": "string", "name": "timestamp"},
    TypeKind.TIMESTAMPTZ: {"type": "string", "name": "timestamp"},
    TypeKind.JSONB: {"type": "json"},
}
