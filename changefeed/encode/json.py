"""Messages in JSON, in the envelopes of CockroachDB.

    wrapped    {"after": {"id": 1, "name": "a"}, "before": null, "key": [1], "updated": "…"}
    bare       {"__crdb__": {"key": [1], "updated": "…"}, "id": 1, "name": "a"}
    row        {"__crdb__": {"updated": "…"}, "id": 1, "name": "a"}
    key_only   no value
    enriched   {"after": {"id": 1, "name": "a"}, "op": "c", "ts_ns": 17…}: see `enriched`
    key        [1]; {"id": 1} in the enriched envelope; ["a"] with key_column = 'name'

`topic` is the table's name, as in CockroachDB, whatever `topic_name` or `topic_prefix` make of it.
With `diff` a wrapped message has the row that the change replaced: under the schema of the change,
or, in a backfill, under the one that was in force before it. A deletion is `{"after": null}` when
wrapped; when bare it has the columns of the key and every other column as null; in a row envelope
it has no value. Fields, and the columns of a row, stand in the order of their names, as
CockroachDB's do. A resolved message is `{"resolved": "…"}` when wrapped or enriched and
`{"__crdb__": {"resolved": "…"}}` in any other envelope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa

from ...cached import cached_property
from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.arrow_columns import AnyArray
from ...catalog.values.column_types import Datum
from ...kvlayer.clock import Timestamp, format_timestamp
from ..contract.changes import ChangeBatch, ChangeKind
from ..contract.message_form import WHOLE_ENVELOPES, Envelope
from ..contract.options import ChangefeedOptions
from .enriched import (
    FeedOrigin,
    encoded,
    key_schema,
    moments,
    nanoseconds,
    operations,
    source_constants,
    value_schema,
)
from .headers import headers_of, shown_columns
from .json_texts import NULL, ColumnTexts, Lines, Parts, Texts, as_lines, as_list, joined
from .named_column import column_values, named_column
from .parquet import deletions, live_places
from .protocol import EncodedBatch
from .topics import Topics

METADATA_FIELD = "__crdb__"

TABLES_MAX = 256
"""Compiled tables kept: one per descriptor version in use, with room for versions gone by."""


class JSONEncoder:
    """Encodes changes as JSON. Tables are compiled once for each descriptor version."""

    def __init__(
        self, options: ChangefeedOptions, topics: Topics, origin: FeedOrigin | None = None
    ) -> None:
        self._options = options
        self._topics = topics
        self._origin = origin
        assert origin is not None or options.envelope is not Envelope.ENRICHED, options
        self._tables: dict[tuple[int, int], _Table] = {}
        self._replaced: dict[tuple[int, int], _Table] = {}
        """Tables of the rows before changes, which have a query's table's columns, not its own."""

    def encode(self, batch: ChangeBatch) -> EncodedBatch:
        table, envelope = self._table(batch.descriptor, self._tables), self._options.envelope
        keys = joined(self._key(batch, table), len(batch))
        values: Sequence[bytes | None]
        if envelope is Envelope.KEY_ONLY:
            values = [None] * len(batch)
        else:
            values = as_list(joined(self._value(batch, table, (keys,)), len(batch)))
        if envelope is Envelope.ROW:
            values = _without_deletions(batch, values)
        if envelope is Envelope.ENRICHED and self._options.schema:
            key = _object({"payload": keys, "schema": table.key_schema})
            keys = joined(key, len(batch))
        if self._options.key_column is not None:
            keys = joined(table.column_keys(batch), len(batch))
        return EncodedBatch(
            topic=table.topic,
            keys=as_list(keys),
            values=values,
            headers=headers_of(batch, self._options),
        )

    def lines(self, batch: ChangeBatch) -> Lines:
        assert self._options.envelope in WHOLE_ENVELOPES, self._options
        table = self._table(batch.descriptor, self._tables)
        return as_lines(self._value(batch, table, self._key(batch, table)), len(batch))

    def encode_resolved(self, topic: str | None, resolved: Timestamp) -> bytes:
        text = f'{{"resolved":"{format_timestamp(resolved)}"}}'
        if self._options.envelope not in (Envelope.WRAPPED, Envelope.ENRICHED):
            text = f'{{"{METADATA_FIELD}":{text}}}'
        return text.encode()

    def _key(self, batch: ChangeBatch, table: _Table) -> Parts:
        enriched = self._options.envelope is Envelope.ENRICHED
        return table.key_objects(batch) if enriched else table.keys(batch)

    def _value(self, batch: ChangeBatch, table: _Table, key: Parts) -> Parts:
        """The values of all changes, whose keys have the texts of `key`."""
        envelope = self._options.envelope
        if envelope is Envelope.ENRICHED:
            return self._enriched(batch, table, key)
        fields = self._metadata(batch, key, table.name)
        if envelope is not Envelope.WRAPPED:
            return table.bare(batch, fields)
        fields["after"] = table.rows(batch)
        if self._options.diff:
            fields["before"] = self._before(batch)
        return _object(fields)

    def _enriched(self, batch: ChangeBatch, table: _Table, key: Parts) -> Parts:
        options, origin = self._options, self._origin
        assert origin is not None, options
        fields: dict[str, Texts | Parts] = {
            "after": table.rows(batch),
            "op": operations(deletions(batch), batch.previous),
            "ts_ns": moments(origin.unix_us(), len(batch)),
        }
        if options.diff:
            fields["before"] = self._before(batch)
        if options.key_in_value:
            fields["key"] = key
        if options.source:
            fields["source"] = _object(self._source(batch, table))
        value = _object(fields)
        if options.schema:
            return _object({"payload": value, "schema": table.value_schema})
        return value

    def _source(self, batch: ChangeBatch, table: _Table) -> dict[str, Texts | Parts]:
        source: dict[str, Texts | Parts] = {**table.source}
        if self._options.updated:
            source["ts_hlc"] = _timestamps(batch.timestamps)
            source["ts_ns"] = nanoseconds(batch.timestamps)
        if self._options.mvcc_timestamp:
            source["mvcc_timestamp"] = _timestamps(batch.written_at)
        return source

    def _table(self, descriptor: TableDescriptor, tables: dict[tuple[int, int], _Table]) -> _Table:
        version = (descriptor.id, descriptor.version)
        table = tables.get(version)
        if table is None:
            if len(tables) >= TABLES_MAX:
                tables.clear()
            table = tables[version] = _Table(descriptor, self._topics, self._options)
            if self._origin is not None and self._options.envelope is Envelope.ENRICHED:
                table.enrich(
                    self._options, self._origin, self._topics.full_names.get(descriptor.id)
                )
        return table

    def _before(self, batch: ChangeBatch) -> Texts:
        """The rows that the changes replaced."""
        if batch.previous is None:
            return NULL  # an initial scan replaces nothing
        table = self._table(batch.before or batch.descriptor, self._replaced)
        return table.rows_or_null(batch.previous)

    def _metadata(self, batch: ChangeBatch, key: Parts, name: str) -> dict[str, Texts | Parts]:
        """The fields that messages have beside their rows, by name."""
        options = self._options
        fields: dict[str, Texts | Parts] = {}
        if options.key_in_value:
            fields["key"] = key
        if options.topic_in_value:
            fields["topic"] = msgspec.json.encode(name)
        if options.updated:
            fields["updated"] = _timestamps(batch.timestamps)
        if options.mvcc_timestamp:
            fields["mvcc_timestamp"] = _timestamps(batch.written_at)
        if options.transactions:
            scanned = batch.kind is ChangeKind.INITIAL_SCAN
            fields["transaction"] = NULL if scanned else _timestamps(batch.timestamps)
        return fields


class _Table:
    """The compiled form of one descriptor version."""

    def __init__(
        self, descriptor: TableDescriptor, topics: Topics, options: ChangefeedOptions
    ) -> None:
        self.topic = topics.of(descriptor)
        self.name = topics.unprefixed(descriptor)
        self._descriptor = descriptor
        self._key_name = options.key_column
        self.key_schema = self.value_schema = b""
        self.source: Mapping[str, Texts] = {}
        columns = descriptor.visible_columns
        null_as_object = options.encode_json_value_null_as_object
        position = {column.id: index for index, column in enumerate(columns)}
        self._columns = [
            (column.name, place, ColumnTexts(column.type, null_as_object=null_as_object))
            for place, column in shown_columns(descriptor, options)
        ]
        self._key_columns = [
            (position[id], ColumnTexts(columns[position[id]].type, key=True))
            for id in descriptor.primary_key
        ]
        self._codec = codec_for(descriptor)

    def enrich(self, options: ChangefeedOptions, origin: FeedOrigin, full_name: str | None) -> None:
        """Prepares the common parts of the table's enriched messages."""
        self.source = source_constants(origin, self._descriptor, full_name)
        self.key_schema = encoded(key_schema(self._descriptor, self.topic))
        self.value_schema = encoded(value_schema(self._descriptor, self.topic, options))

    def keys(self, batch: ChangeBatch) -> Parts:
        """The keys of all changes, arrays of the key's columns."""
        return _array(self._key_texts(batch))

    @cached_property
    def _key_column(self) -> tuple[Column, ColumnTexts]:
        """The column that `key_column` names. Raises SQLError 42703."""
        assert self._key_name is not None, self.name
        column = named_column(self._descriptor, self._key_name, "key_column")
        return column, ColumnTexts(column.type)

    def column_keys(self, batch: ChangeBatch) -> Parts:
        """The keys of all changes, arrays of the value of the column that `key_column` names."""
        column, texts = self._key_column
        return _array([texts.of_values(column_values(batch, column))])

    def key_objects(self, batch: ChangeBatch) -> Parts:
        """The keys of all changes, objects of the key's columns."""
        names = [column.name for column in self._descriptor.key_columns]
        return _object(dict(zip(names, self._key_texts(batch), strict=True)))

    def _key_texts(self, batch: ChangeBatch) -> list[Texts | Parts]:
        if batch.columns is not None:
            arrays = (
                self._codec.decode_keys(batch.keys).columns
                if batch.deleted
                else [batch.columns.column(place) for place, _ in self._key_columns]
            )
            pairs = zip(self._key_columns, arrays, strict=True)
            return [column.of_array(array) for (_, column), array in pairs]
        values = zip(*self._key_rows(batch), strict=True)
        return [
            column.of_values(column_values)
            for (_, column), column_values in zip(self._key_columns, values, strict=True)
        ]

    def rows(self, batch: ChangeBatch) -> Texts | Parts:
        """The rows of all changes as objects; null for deletions."""
        live = self._live(batch)
        if live is None:
            return NULL
        fields, count = live
        parts = _object(fields)
        return parts if count == len(batch) else _spread(batch, joined(parts, count))

    def rows_or_null(self, rows: Sequence[tuple[Datum, ...] | None]) -> Texts:
        """The texts of these rows; null where there is none."""
        there = [row for row in rows if row is not None]
        if not there:
            return NULL
        texts = iter(as_list(joined(_object(self._of_rows(there)), len(there))))
        return [NULL if row is None else next(texts) for row in rows]

    def bare(self, batch: ChangeBatch, metadata: Mapping[str, Texts | Parts]) -> Parts:
        """Objects of the columns of all changes, and the metadata as one more field."""
        rows = batch.shown
        if rows is None and not batch.deleted:
            rows = batch.columns
        if rows is not None:
            fields: dict[str, Texts | Parts] = {
                name: column.of_array(rows.column(place)) for name, place, column in self._columns
            }
        else:
            fields = self._of_rows(list(batch.whole_rows()))
        return _object({**fields, METADATA_FIELD: _object(metadata)} if metadata else fields)

    def _live(self, batch: ChangeBatch) -> tuple[dict[str, Texts | Parts], int] | None:
        """The columns of the rows that are no deletions, and how many; None where all are."""
        if batch.columns is not None:
            columns = batch.columns
            if not columns.num_rows:
                return None
            return {
                name: column.of_array(columns.column(place))
                for name, place, column in self._columns
            }, columns.num_rows
        assert batch.rows is not None, batch
        rows = [row for row in batch.rows if row is not None]
        return (self._of_rows(rows), len(rows)) if rows else None

    def _of_rows(self, rows: Sequence[Sequence[Datum]]) -> dict[str, Texts | Parts]:
        columns = list(zip(*rows, strict=True))
        return {name: column.of_values(columns[place]) for name, place, column in self._columns}

    def _key_rows(self, batch: ChangeBatch) -> list[Sequence[Datum]]:
        assert batch.rows is not None, batch
        places = [place for place, _ in self._key_columns]
        return [
            self._codec.decode_key(key) if row is None else [row[place] for place in places]
            for key, row in zip(batch.keys, batch.rows, strict=True)
        ]


def _object(fields: Mapping[str, Texts | Parts]) -> Parts:
    """The parts of objects with these fields, in the order of their names."""
    parts: list[Texts] = []
    for name in sorted(fields, key=str.encode):
        separator, value = (b"," if parts else b"{"), fields[name]
        parts.append(separator + msgspec.json.encode(name) + b":")
        parts += _parts(value)
    return (*parts, b"}") if parts else (b"{}",)


def _array(items: Sequence[Texts | Parts]) -> Parts:
    """The parts of arrays with these items."""
    parts: list[Texts] = []
    for item in items:
        parts += [b"," if parts else b"[", *_parts(item)]
    return (*parts, b"]")


def _parts(value: Texts | Parts) -> Parts:
    return value if isinstance(value, tuple) else (value,)


def _spread(batch: ChangeBatch, live: list[bytes] | AnyArray) -> Texts:
    """The texts of rows that are there, with null where a change is a deletion."""
    places = live_places(batch)
    if isinstance(live, list):
        return [NULL if place is None else live[place] for place in places]
    return live.take(pa.array(places, pa.int64()))


def _without_deletions(
    batch: ChangeBatch, values: Sequence[bytes | None]
) -> Sequence[bytes | None]:
    """The same values, None for deletions."""
    without = list(values)
    for place in batch.gone:
        without[place] = None
    return without


def _timestamps(timestamps: Sequence[Timestamp]) -> Texts:
    """Timestamps as texts. Most batches have one, and so one text for all rows."""
    known = {at: f'"{format_timestamp(at)}"'.encode() for at in set(timestamps)}
    if len(known) == 1:
        (text,) = known.values()
        return text
    return [known[at] for at in timestamps]
