"""Messages in Avro, whose schemas a registry holds: CockroachDB's records, in Confluent's framing.

    0 | schema id (4 bytes, big-endian) | the record

    key       record orders            its key's columns, or that of `key_column`
    wrapped   record orders_envelope   before (with `diff`), after, updated, mvcc_timestamp
    bare      record orders_envelope   updated, mvcc_timestamp, record
    resolved  record orders_envelope   resolved

`after` and `record` are a record `orders` of the table's columns, `before` is an `orders_before`:
see `avro_types`. A deletion has null for `after`, and a `record` of its key alone. A key belongs to
subject `orders-key`, a value to `orders-value`; `avro_schema_prefix` stands before both, and is the
namespace of all records. Names are written as those of topics are.

The encoder does no I/O: `schemas` tells what has to have an id before a batch is encoded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any

import fastavro
from fastavro.types import Schema as ParsedSchema

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.arrow_columns import column_datums
from ...catalog.values.column_types import Datum
from ...kvlayer.clock import Timestamp, format_timestamp
from ..contract.changes import ChangeBatch
from ..contract.message_form import Envelope
from ..contract.options import ChangefeedOptions
from .avro_types import Schema, Writer, avro_name, field_of, writer_of
from .headers import headers_of, shown_columns
from .named_column import column_values, named_column
from .protocol import EncodedBatch, RegisteredSchema
from .topics import Topics, topic_name

MAGIC = b"\x00"

TABLES_MAX = 256
"""Compiled tables kept: one per descriptor version in use, with room for versions gone by."""

Row = Sequence[Datum]


class AvroEncoder:
    """Encodes changes as Avro. Tables are compiled once for each descriptor version, and their
    schemas keep the ids that they were given."""

    def __init__(self, options: ChangefeedOptions, topics: Topics) -> None:
        self._options = options
        self._topics = topics
        self._tables: dict[tuple[int, int, int], _Table] = {}
        self._resolved: dict[str, _AvroSchema] = {}

    def schemas(self, batch: ChangeBatch) -> Sequence[RegisteredSchema]:
        table = self._table(batch)
        if self._options.envelope is Envelope.KEY_ONLY:
            return (table.key,)
        return (table.key, table.value)

    def resolved_schemas(self, topic: str | None) -> Sequence[RegisteredSchema]:
        return (self._resolved_schema(topic),)

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        table, options = self._table(batch), self._options
        keys = [table.key.message(record) for record in table.key_records(batch)]
        values: Sequence[bytes | None]
        if options.envelope is Envelope.KEY_ONLY:
            values = [None] * len(batch)
        else:
            values = [table.value.message(record) for record in self._values(batch, table)]
        topic, headers = self._topics.of(batch.descriptor), headers_of(batch, options)
        return EncodedBatch(topic=topic, keys=keys, values=values, headers=headers)

    def encode_resolved(self, topic: str | None, resolved: Timestamp) -> bytes:
        return self._resolved_schema(topic).message({"resolved": format_timestamp(resolved)})

    def _values(self, batch: ChangeBatch, table: _Table) -> list[dict[str, object]]:
        options = self._options
        if options.envelope is Envelope.WRAPPED:
            rows = batch.iterate_rows()
            records: list[dict[str, object]] = [
                {"after": None if row is None else table.row.record(row)} for row in rows
            ]
        else:
            records = [{"record": table.row.record(row)} for row in table.shown_rows(batch)]
        if options.diff and batch.previous is not None:
            for record, replaced in zip(records, batch.previous, strict=True):
                record["before"] = None if replaced is None else table.before.record(replaced)
        if options.updated:
            _add(records, "updated", batch.timestamps)
        if options.mvcc_timestamp:
            _add(records, "mvcc_timestamp", batch.written_at)
        return records

    def _table(self, batch: ChangeBatch) -> _Table:
        descriptor, before = batch.descriptor, batch.before or batch.descriptor
        version = (descriptor.id, descriptor.version, before.version)
        table = self._tables.get(version)
        if table is None:
            if len(self._tables) >= TABLES_MAX:
                self._tables.clear()
            name = self._options.avro_schema_prefix + self._topics.unprefixed(descriptor)
            table = self._tables[version] = _Table(name, descriptor, before, self._options)
        return table

    def _resolved_schema(self, topic: str | None) -> _AvroSchema:
        assert topic is not None, "resolved messages in Avro go to topics"
        schema = self._resolved.get(topic)
        if schema is None:
            envelope = _envelope(topic, [_text("resolved")], self._options.avro_schema_prefix)
            schema = self._resolved[topic] = _AvroSchema(f"{topic_name(topic)}-value", envelope)
        return schema


class _AvroSchema(RegisteredSchema):
    """A registered schema, and the writer of its records."""

    def __init__(self, subject: str, schema: Schema) -> None:
        super().__init__(subject, json.dumps(schema))
        self._parsed: ParsedSchema = fastavro.parse_schema(schema)

    def message(self, record: dict[str, object]) -> bytes:
        assert self.id is not None, f"{self.subject} is not registered"
        out = BytesIO()
        out.write(MAGIC + self.id.to_bytes(4, "big"))
        fastavro.schemaless_writer(out, self._parsed, record)
        return out.getvalue()


class _Columns:
    """Makes records of rows that have these columns, some of which are shown."""

    def __init__(self, columns: Iterable[tuple[int, Column]]) -> None:
        self._columns: list[tuple[str, int, Writer | None]] = [
            (avro_name(column.name), place, writer_of(column.type)) for place, column in columns
        ]

    def record(self, row: Row) -> dict[str, object]:
        return {
            name: value if writer is None or value is None else writer(value)
            for name, place, writer in self._columns
            for value in (row[place],)
        }


class _Table:
    """The compiled form of one descriptor version, and of the one before in a backfill."""

    def __init__(
        self,
        name: str,
        descriptor: TableDescriptor,
        before: TableDescriptor,
        options: ChangefeedOptions,
    ) -> None:
        self._codec = codec_for(descriptor)
        self._descriptor = descriptor
        prefix = options.avro_schema_prefix
        self.row = _Columns(shown_columns(descriptor, options))
        self.before = _Columns(shown_columns(before, options))
        named = options.key_column
        self._column = None if named is None else named_column(descriptor, named, "key_column")
        key_columns = descriptor.key_columns if self._column is None else (self._column,)
        self._key = _Columns(enumerate(key_columns))
        key = _record(name, map(field_of, key_columns), prefix)
        self.key = _AvroSchema(f"{topic_name(name)}-key", key)
        fields: list[Schema] = []
        wrapped = options.envelope is Envelope.WRAPPED
        if wrapped and options.diff:
            columns = [column for _, column in shown_columns(before, options)]
            replaced = _record(f"{name}_before", map(field_of, columns), prefix)
            fields.append(_nullable("before", replaced))
        record = _record(
            name, [field_of(column) for _, column in shown_columns(descriptor, options)], prefix
        )
        if wrapped:
            fields.append(_nullable("after", record))
        if options.updated:
            fields.append(_text("updated"))
        if options.mvcc_timestamp:
            fields.append(_text("mvcc_timestamp"))
        if not wrapped:
            fields.append(_nullable("record", record))
        self.value = _AvroSchema(f"{topic_name(name)}-value", _envelope(name, fields, prefix))

    def key_records(self, batch: ChangeBatch) -> list[dict[str, object]]:
        if self._column is not None:
            return [self._key.record((value,)) for value in column_values(batch, self._column)]
        return [self._key.record(self._codec.decode_key(key)) for key in batch.keys]

    def shown_rows(self, batch: ChangeBatch) -> list[Row]:
        """The rows of all changes: of a deletion its key and NULLs, or what a query shows of it."""
        columns = self._descriptor.visible_columns
        if batch.shown is not None:
            arrays = zip(columns, batch.shown.columns, strict=True)
            return list(
                zip(*(column_datums(column.type, array) for column, array in arrays), strict=True)
            )
        return list(batch.whole_rows())


def _record(name: str, fields: Iterable[Schema], namespace: str) -> Schema:
    found: Schema = {"type": "record", "name": avro_name(name), "fields": list(fields)}
    return found | ({"namespace": namespace} if namespace else {})


def _envelope(name: str, fields: Sequence[Schema], namespace: str) -> Schema:
    return _record(f"{name}_envelope", fields, namespace)


def _nullable(name: str, of: object) -> Schema:
    return {"type": ["null", of], "name": name, "default": None}


def _text(name: str) -> Schema:
    return _nullable(name, "string")


def _add(records: Sequence[dict[str, Any]], field: str, timestamps: Sequence[Timestamp]) -> None:
    for record, at in zip(records, timestamps, strict=True):
        record[field] = format_timestamp(at)
