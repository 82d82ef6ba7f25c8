"""What a feed may follow, each a source of versions that one suite holds to the feed contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from random import Random
from typing import Protocol

import pyarrow as pa

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.descriptors.names import TableName
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.relaxed.events import Event, Line, Snapshot, lines_table
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

    @property
    def spans(self) -> Sequence[Span]: ...

    async def write(self, random: Random) -> None:
        """Commits something, or nothing."""
        ...


class TableSource:
    """A table, by SQL's own transactions."""

    def __init__(self, node: SqlNode, table: TableDescriptor) -> None:
        self.history = History()
        self.timestamps: list[Timestamp] = []
        self.node = node
        self._table = table
        self._codec = codec_for(table)

    @property
    def spans(self) -> Sequence[Span]:
        return [self._table.primary_span]

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


async def _crashes(node: SqlNode) -> TableDescriptor:
    reader = node.store.snapshot(await node.store.now())
    table = await node.services.catalog.find(
        reader, TableName.resolve(["crashes"], current_database="defaultdb")
    )
    assert table is not None
    return table


async def table(node: SqlNode) -> Source:
    await node.sql(CREATE)
    return TableSource(node, await _crashes(node))


async def relaxed_log(node: SqlNode) -> Source:
    await node.sql(CREATE)
    await node.sql("CREATE RELAXED LOG d FOR TABLES (crashes)")
    return RelaxedSource(node, await _crashes(node))


SOURCES = {"table": table, "relaxed log": relaxed_log}
