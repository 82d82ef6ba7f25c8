"""What a feed may follow, each a source of versions that one suite holds to the feed contract."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

import pyarrow as pa

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.names import TableName
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.kvlayer.clock import Timestamp, duration
from tailrace.kvlayer.raw import (
    IngestedEntry,
    RawKeyspace,
    ReplicaKeyspace,
    decode_entry,
    encode_deletion,
    encode_entry,
    keyspace_span,
    raw_key,
    user_key,
)
from tailrace.kvlayer.relaxed.events import Event, Line, Snapshot, lines_table
from tailrace.kvlayer.replication.replica import Begin
from tailrace.kvlayer.span import Span
from tailrace.sql.execute.write.relaxed_load import RelaxedLogs
from tests.harness.sql_node import SqlNode
from tests.harness.validators import History
from tests.kvlayer.relaxed.relaxed_lines import DOMAIN, Store

CREATE = "CREATE TABLE crashes (id INT8 PRIMARY KEY, signal INT8, note STRING)"
ROWS = 6
Row = tuple[int, int | None, str | None]


class Source(Protocol):
    """Something that is written while feeds follow it."""

    history: History
    """Every version that was committed: the oracle, made of what was written and never read."""

    timestamps: list[Timestamp]

    table: TableDescriptor
    feed: str
    """What stands behind FOR in a CREATE CHANGEFEED."""

    @property
    def spans(self) -> Sequence[Span]: ...

    async def write(self, random: Random) -> None:
        """Commits something, or nothing."""
        ...

    async def resolve(self) -> Timestamp:
        """The present: all that was written lies at or below, and feeds come to resolve it."""
        ...

    def shown(self, key: bytes, body: bytes, at: Timestamp) -> tuple[object, ...] | None:
        """The row as feeds show it, of a version in the history; None for a deletion."""
        ...

    def moved(self, node: SqlNode) -> None:
        """The store has crashed, and goes on as that of `node`."""
        ...


class TableSource:
    """A table, by SQL's own transactions."""

    def __init__(self, node: SqlNode, table: TableDescriptor) -> None:
        self.history = History()
        self.timestamps: list[Timestamp] = []
        self.node = node
        self.table = table
        self.feed = "TABLE crashes"
        self._codec = codec_for(table)

    @property
    def spans(self) -> Sequence[Span]:
        return [self.table.primary_span]

    async def resolve(self) -> Timestamp:
        return await self.node.store.now()

    def shown(self, key: bytes, body: bytes, at: Timestamp) -> tuple[object, ...] | None:
        return self._codec.decode_row(key, body)

    def moved(self, node: SqlNode) -> None:
        self.node = node

    async def write(self, random: Random) -> None:
        rows: dict[int, Row | None] = {}
        await self.node.sql("BEGIN")
        for _ in range(random.randint(1, 3)):
            id = random.randrange(ROWS)
            if random.random() < 0.2:
                deleted = await self.node.sql("DELETE FROM crashes WHERE id = $1", id)
                if deleted.row_count:
                    rows[id] = None
                continue
            row = (id, random.choice((None, random.randrange(99))), random.choice((None, "a")))
            await self.node.sql("UPSERT INTO crashes VALUES ($1, $2, $3)", *row)
            rows[id] = row
        committed = await self.node.sql("COMMIT")
        if rows:
            assert committed.commit_timestamp is not None
            self.note(committed.commit_timestamp, rows)

    def note(self, at: Timestamp, rows: Mapping[int, Row | None]) -> None:
        bodies: dict[bytes, bytes | None] = {}
        for id, row in rows.items():
            bodies[self._codec.encode_key((id,))] = (
                None if row is None else self._codec.encode_row(row)[1]
            )
        self.history.note_commit(at, bodies)
        self.timestamps.append(at)


class RelaxedSource(TableSource):
    """A relaxed log: a store's batches, whose lines come to the server in pieces and twice."""

    def __init__(self, node: SqlNode, table: TableDescriptor) -> None:
        super().__init__(node, table)
        self._logs = RelaxedLogs(node.services)
        self._store = Store()
        self._unsent: list[Line] = [Snapshot(domain=DOMAIN, cut=0, cells={})]
        self._sent: list[Line] = []
        self._shown: dict[int, Row] = {}

    def moved(self, node: SqlNode) -> None:
        super().moved(node)
        self._logs = RelaxedLogs(node.services)

    async def write(self, random: Random) -> None:
        """A batch of the store; then all that is new of its log, or some events without a rest."""
        store = self._store
        with store.domain.batch():
            for _ in range(random.randint(1, 4)):
                column = random.choice(("signal", "note"))
                new = random.choice((None, b"%d" % random.randrange(99)))
                store.write(b"%d" % random.randrange(ROWS), column, new)
        self._unsent += store.lines[:]
        store.log.events.clear()
        store.log.records.clear()
        if random.random() < 0.3:
            events = [line for line in self._unsent if isinstance(line, Event)]
            assert await self._send(events[:2], random) is None, "no record has come"
            return
        state = dict(store.cells.values)
        at = await self._send(self._unsent, random)
        rows = _rows(state)
        changed = {
            id: rows.get(id)
            for id in rows.keys() | self._shown.keys()
            if rows.get(id) != self._shown.get(id)
        }
        if at is not None and changed:
            self.note(at, changed)
        self._shown = rows

    async def _send(self, lines: Sequence[Line], random: Random) -> Timestamp | None:
        """Loads lines, some of them again. The commit timestamp of the change set they made."""
        doubled = random.choices(self._sent, k=3) if self._sent else []
        self._sent += lines
        self._unsent = [line for line in self._unsent if line not in lines]
        sending = [*lines, *doubled]
        random.shuffle(sending)

        async def batches() -> AsyncIterator[pa.RecordBatch]:
            for batch in lines_table(sending).combine_chunks().to_batches():
                yield batch

        report = await self._logs.load("d", batches())
        return report.commit_timestamp if report.change_sets else None


class KeyspaceSource:
    """A raw keyspace that is written here, by calls that are one commit each."""

    def __init__(self, node: SqlNode, table: TableDescriptor) -> None:
        self.history = History()
        self.timestamps: list[Timestamp] = []
        self.table = table
        self.feed = "KEYSPACE ks"
        self.moved(node)

    def moved(self, node: SqlNode) -> None:
        self.node = node
        self._raw = RawKeyspace(node.store, self.table.id)

    @property
    def spans(self) -> Sequence[Span]:
        return [keyspace_span(self.table.id)]

    async def resolve(self) -> Timestamp:
        return await self.node.store.now()

    async def write(self, random: Random) -> None:
        names = random.sample(NAMES, random.randint(1, 3))
        if random.random() < 0.3:
            at = await self._raw.delete_many(names)
            self.note(at, dict.fromkeys(names, DELETED))
            return
        ttl = random.choice((None, 1, 60))
        pairs = [(name, b"%d" % random.randrange(99)) for name in names]
        at = await self._raw.put_many(pairs, ttl_seconds=ttl)
        self.note(at, {name: Put(value, ttl) for name, value in pairs})

    def note(self, at: Timestamp, written: Mapping[bytes, Put]) -> None:
        bodies = {raw_key(self.table.id, name): put.body(at) for name, put in written.items()}
        self.history.note_commit(at, bodies)
        self.timestamps.append(at)

    def shown(self, key: bytes, body: bytes, at: Timestamp) -> tuple[object, ...] | None:
        entry = decode_entry(body)
        return None if entry.deleted else (user_key(key), entry.value, entry.expires_at)


@dataclass(frozen=True, slots=True)
class Put:
    """What was asked of a key: a value that lives for so many seconds, or its deletion."""

    value: bytes | None
    ttl: int | None = None

    def body(self, at: Timestamp) -> bytes:
        if self.value is None:
            return encode_deletion(Timestamp(at + duration(seconds=25 * 3600)))
        return encode_entry(
            self.value, None if self.ttl is None else Timestamp(at + duration(seconds=self.ttl))
        )


DELETED = Put(None)
NAMES = [b"a", b"b", b"b\x00", b"m", b"z", b"zz"]


class ReplicaSource(KeyspaceSource):
    """A replica of a keyspace elsewhere, whose clock is an hour behind. Its versions come out of
    order where they are of different keys, and some of them twice."""

    def __init__(self, node: SqlNode, table: TableDescriptor) -> None:
        super().__init__(node, table)
        self._unsent: list[IngestedEntry] = []
        self._one_at_a_time = asyncio.Lock()

    def moved(self, node: SqlNode) -> None:
        super().moved(node)
        self._replica = ReplicaKeyspace(node.store, self.table.id)
        self._epoch = 0

    async def write(self, random: Random) -> None:
        async with self._one_at_a_time:
            for _ in range(random.randint(1, 3)):
                at, name = await self._drawn(), random.choice(NAMES)
                value = random.choice((None, b"%d" % random.randrange(99)))
                put = DELETED if value is None else Put(value, random.choice((None, 9)))
                self.note(at, {name: put})
                self._unsent.append(_ingested(name, put, at))
            sending = sorted(self._unsent, key=lambda entry: (entry.key, entry.timestamp))
            sent = sending[: random.randint(1, len(sending))]
            await self._ingest(sent + sent[-1:])

    async def resolve(self) -> Timestamp:
        async with self._one_at_a_time:
            at = await self._drawn()
            await self._ingest(list(self._unsent), resolved=at)
            return at

    async def _drawn(self) -> Timestamp:
        return Timestamp(await self.node.store.now() - duration(seconds=3600))

    async def _ingest(
        self, entries: Sequence[IngestedEntry], resolved: Timestamp | None = None
    ) -> None:
        if not self._epoch:
            self._epoch = (await self._replica.open("main")).epoch
        self._unsent = [entry for entry in self._unsent if entry not in entries]
        await self._replica.ingest(
            entries, source="main", epoch=self._epoch, origin=9, resolved=resolved
        )


def _ingested(name: bytes, put: Put, at: Timestamp) -> IngestedEntry:
    ends = decode_entry(put.body(at)).expires_at
    return IngestedEntry(name, put.value, at, ends)


def _rows(cells: Mapping[tuple[str, bytes, str], bytes]) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for (_, row, column), value in cells.items():
        id, signal, note = rows.get(int(row), (int(row), None, None))
        if column == "signal":
            signal = int(value)
        else:
            note = value.decode()
        rows[id] = (id, signal, note)
    return rows


async def _found(node: SqlNode, name: str) -> TableDescriptor:
    reader = node.store.snapshot(await node.store.now())
    table = await node.services.catalog.find(
        reader, TableName.resolve([name], current_database="defaultdb"), keyspaces=True
    )
    assert table is not None
    return table


async def table(node: SqlNode) -> Source:
    await node.sql(CREATE)
    return TableSource(node, await _found(node, "crashes"))


async def relaxed_log(node: SqlNode) -> Source:
    await node.sql(CREATE)
    await node.sql("CREATE RELAXED LOG d FOR TABLES (crashes)")
    return RelaxedSource(node, await _found(node, "crashes"))


async def keyspace(node: SqlNode) -> Source:
    await node.sql("CREATE KEYSPACE ks")
    return KeyspaceSource(node, await _found(node, "ks"))


async def replica(node: SqlNode) -> Source:
    await node.sql("CREATE KEYSPACE ks WITH (role = 'replica')")
    table = await _found(node, "ks")
    await node.store.replica(keyspace_span(table.id), Begin())
    return ReplicaSource(node, table)


SOURCES = {
    "table": table,
    "relaxed log": relaxed_log,
    "keyspace": keyspace,
    "replica": replica,
}
