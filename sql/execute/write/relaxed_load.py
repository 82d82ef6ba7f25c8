"""Loading a relaxed log: lines in, change sets out, each of them one transaction.

What a call was told is taken is durable: lines that no change set has held yet lie in the log's own
keyspace, and go with the change set that holds them. Whoever sends a line twice has sent it once,
so a load that was cut off is resumed by sending all of it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.relaxed.logs import RelaxedLog, find_log
from ....catalog.rights.privileges import Privilege, securable
from ....catalog.rights.users import ROOT
from ....catalog.store.descriptor_store import DescriptorReader
from ....catalog.values.errors import SQLError
from ....kvlayer.access import Evaluation, Transaction
from ....kvlayer.clock import ZERO, Timestamp
from ....kvlayer.errors import KVError
from ....kvlayer.process.memory import share
from ....kvlayer.relaxed.errors import PendingLimit, RelaxedLogError, SurvivorError, TooManyEvents
from ....kvlayer.relaxed.events import LINES, rows_where
from ....kvlayer.relaxed.ids import HALF, ID_MASK, NO_ID, before
from ....kvlayer.relaxed.reader import EVENTS_WANTED, ChangeSet, DomainState, Reader
from ....kvlayer.settings import declare_bytes
from ....kvlayer.span import Span, prefix_end
from ...plan.needs import Need
from ...results.errors import from_kv
from ...runtime.authorization import require
from ...runtime.relations import LeaseScope
from ...runtime.services import Services
from ...runtime.transactions import alone
from .relaxed_rows import apply_change_set

T = TypeVar("T")

BESIDE_EVENTS = 20_000
"""With more events, or cells, what Arrow does with all of them at once is done beside the loop."""

FED_ROWS = 5000
"""Lines that a reader takes in one step."""

PIECE_ROWS = 10_000
"""Lines of one pending value."""

PENDING_BYTES_MAX = declare_bytes(
    "relaxed.pending_bytes_max",
    share(16, at_most=256 * 1024 * 1024),
    "how many bytes of a relaxed log's events may wait for a quiescence point, of each domain",
)


@dataclass(slots=True)
class RelaxedReport:
    """The outcome of a load, so far."""

    lines: int = 0
    change_sets: int = 0
    commit_timestamp: Timestamp = ZERO
    domains: list[DomainState] = field(default_factory=list)


@dataclass(slots=True)
class _Domain:
    """A domain's reader, and what it has been given.

    `stored` is the position that is durable. `pieces` are the pending values by their keys, and
    `unkept` are lines of the call under way that no pending value holds; both with the last id in
    them. `fed` counts lines since change sets were last looked for. `state` is as of the last call.
    """

    reader: Reader
    stored: int | None
    pieces: dict[bytes, int] = field(default_factory=dict)
    unkept: list[tuple[pa.Table, int]] = field(default_factory=list)
    state: DomainState | None = None
    next_number: int = 0
    fed: int = 0


class RelaxedLogs:
    """The relaxed logs that a node loads."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._locks: dict[int, asyncio.Lock] = {}
        self._domains: dict[tuple[int, int], _Domain] = {}
        self._names: dict[int, str] = {}
        """Names of the logs at their last load here."""

    async def load(
        self, name: str, lines: AsyncIterable[pa.RecordBatch], *, user: str = ROOT
    ) -> RelaxedReport:
        """Takes lines of `kvlayer.relaxed.events.LINES`, a batch at a time.

        Raises SQLError: 42704 for a log that is not there, 42501, and for lines that are refused.
        Change sets that were committed before stay, and all else is to be sent again.
        """
        log = await self.permit(name, user)
        self._names[log.id] = log.name
        report, domains = RelaxedReport(), dict[int, _Domain]()
        async with self._locks.setdefault(log.id, asyncio.Lock()):
            try:
                async for batch in lines:
                    await self._take(log, _as_lines(batch), report, domains)
                for known in domains.values():
                    await self._commit_sets(log, known, report, rest=True)
                    await self._keep(log, known)
                    known.state = await _beside(self._services, known.reader, known.reader.state)
                    report.domains.append(known.state)
            except BaseException as error:
                # What they have taken in is forgotten: what is durable is read again.
                for domain in domains:
                    del self._domains[log.id, domain]
                if isinstance(error, RelaxedLogError):
                    raise _told(error) from error
                if isinstance(error, KVError):
                    raise from_kv(error) from error
                raise
        return report

    async def permit(self, name: str, user: str) -> RelaxedLog:
        """The log, where the user may load it. Raises SQLError 42704 and 42501."""
        services, at = self._services, await self._services.store.now()
        log = await find_log(services.store.snapshot(at), name)
        needed = int(Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE)  # on its tables
        for table_id in log.table_ids:
            table = await services.catalog.descriptors.read_at(table_id, at)
            assert table is not None, table_id
            await require(services, user, (Need(needed, securable(table)),))
        return log

    async def states(self, name: str, *, user: str = ROOT) -> list[DomainState]:
        """The progress of each domain of a log. Raises SQLError 42704 and 42501, as `load` does."""
        log = await self.permit(name, user)
        reader = self._services.store.snapshot(await self._services.store.now())
        return await domain_states(self._services, reader, log)

    def loaded_here(self) -> list[tuple[str, DomainState]]:
        """The logs that this node has in memory, by the names under which they were loaded."""
        return [
            (self._names[log_id], known.state)
            for (log_id, _), known in self._domains.items()
            if known.state is not None
        ]

    async def _take(
        self, log: RelaxedLog, lines: pa.Table, report: RelaxedReport, taken: dict[int, _Domain]
    ) -> None:
        """Feeds the readers of the lines' domains, and commits what makes large change sets."""
        domains = lines.column("domain").unique().to_pylist()
        for domain in domains:
            assert isinstance(domain, int), domain
            known = taken[domain] = await self._known(log, domain)
            part = lines if len(domains) == 1 else rows_where(lines, "domain", domain)
            await _feed(known.reader, part)
            known.unkept.append((part, _last_id(part)))
            known.fed += part.num_rows
            if known.fed >= EVENTS_WANTED:
                await self._commit_sets(log, known, report, rest=False)
        report.lines += lines.num_rows

    async def _known(self, log: RelaxedLog, domain: int) -> _Domain:
        known = self._domains.get((log.id, domain))
        if known is None:
            reader = self._services.store.snapshot(await self._services.store.now())
            known = await _read_domain(self._services, reader, log, domain)
            self._domains[log.id, domain] = known
        return known

    async def _commit_sets(
        self, log: RelaxedLog, known: _Domain, report: RelaxedReport, *, rest: bool
    ) -> None:
        """Commits change sets, and lets go of the lines that they have held."""
        known.fed = 0
        sets = known.reader.advance(events_min=EVENTS_WANTED, rest=rest)
        services, reader = self._services, known.reader
        while (change_set := await _beside(services, reader, lambda: next(sets, None))) is not None:
            report.commit_timestamp = await self._commit(log, change_set, known.stored)
            report.change_sets += 1
            known.stored = change_set.end
            await asyncio.sleep(0)
        floor = known.reader.floor
        known.unkept = [part for part in known.unkept if _needed(part[1], floor)]

    async def _commit(
        self, log: RelaxedLog, change_set: ChangeSet, stored: int | None
    ) -> Timestamp:
        """One transaction: the rows, and that they are there."""
        services = self._services
        key = log.position_key(change_set.domain)
        beside = services.relaxed_lane if change_set.changes.num_rows > BESIDE_EVENTS else None

        async def work(transaction: Transaction, scope: LeaseScope) -> None:
            if not change_set.snapshot:
                await _check_position(transaction, log, change_set.domain, stored)
            tables: dict[str, TableDescriptor] = {}
            for table_id in log.table_ids:
                table = await scope.table(table_id, transaction.read_timestamp)
                tables[table.name] = table
            await apply_change_set(services, tables, change_set, transaction, beside)
            await transaction.put([key], [msgspec.msgpack.encode(change_set.end)])

        _, at, _ = await alone(services, work)
        return at

    async def _keep(self, log: RelaxedLog, known: _Domain) -> None:
        """Makes the lines durable that no change set has held, and lets go of those it has."""
        store, reader = self._services.store, known.reader
        left = [_ahead(part, reader.floor) for part, _ in known.unkept]
        known.unkept = []
        lines = pa.concat_tables([LINES.empty_table(), *left])
        for start in range(0, lines.num_rows, PIECE_ROWS):
            piece = lines.slice(start, PIECE_ROWS)
            key = log.pending_prefix(reader.domain) + known.next_number.to_bytes(8, "big")
            known.next_number += 1
            known.pieces[key] = _last_id(piece)
            value = _encoded(piece)

            def put(evaluation: Evaluation, key: bytes = key, value: bytes = value) -> None:
                evaluation.put([key], [value])

            await store.one_phase(put)
        gone = [key for key, last in known.pieces.items() if not _needed(last, reader.floor)]
        if not gone:
            return
        for key in gone:
            del known.pieces[key]

        def let_go(evaluation: Evaluation) -> None:
            evaluation.delete(gone)
            evaluation.put(
                [log.position_key(reader.domain)], [msgspec.msgpack.encode(reader.floor)]
            )

        await store.one_phase(let_go)
        known.stored = reader.floor


async def domain_states(
    services: Services, reader: DescriptorReader, log: RelaxedLog
) -> list[DomainState]:
    """Returns the durable position of each domain of the log."""
    states = []
    for domain in sorted({domain async for domain in _domains(reader, log)}):
        known = await _read_domain(services, reader, log, domain)
        states.append(await _beside(services, known.reader, partial(_looked_at, known.reader)))
    return states


async def _domains(reader: DescriptorReader, log: RelaxedLog) -> AsyncIterator[int]:
    """The domains that have a position or pending events, of which one key each is read."""
    span, start = Span.prefix(log.prefix), len(log.prefix) + 1
    at: bytes | None = span.start
    while at is not None:
        async with aclosing(reader.scan_slices(Span(at, span.end))) as slices:
            first = await anext(slices, None)
        at = None
        if first is not None:
            key = first[0][0]
            yield int.from_bytes(key[start : start + 8], "big")
            at = prefix_end(key[: start + 8])


def _looked_at(reader: Reader) -> DomainState:
    """The state of a domain that was read for it."""
    try:
        for _ in reader.advance():
            break  # a change set that is being committed
    except RelaxedLogError:
        pass  # whoever sent it was told
    return reader.state()


async def _beside(services: Services, reader: Reader, read: Callable[[], T]) -> T:
    """Reads of a domain; beside the loop, where that takes long."""
    if reader.pending_count + reader.cell_count <= BESIDE_EVENTS:
        return read()
    return await services.relaxed_lane.run(read)


async def _feed(reader: Reader, lines: pa.Table) -> None:
    for start in range(0, lines.num_rows, FED_ROWS):
        reader.feed(lines.slice(start, FED_ROWS))
        await asyncio.sleep(0)


async def _read_domain(
    services: Services, reader: DescriptorReader, log: RelaxedLog, domain: int
) -> _Domain:
    """A domain's reader at its durable position, with what has waited since."""
    body = await reader.get(log.position_key(domain))
    position = None if body is None else msgspec.msgpack.decode(body, type=int)
    bound = services.store.settings.get(PENDING_BYTES_MAX)
    known = _Domain(Reader(domain, position, pending_bytes_max=bound), position)
    prefix = log.pending_prefix(domain)
    async with aclosing(reader.scan_slices(Span.prefix(prefix))) as slices:
        async for rows in slices:
            for key, value in rows:
                piece = pa.ipc.open_stream(value).read_all()
                known.pieces[key] = _last_id(piece)
                known.next_number = int.from_bytes(key[len(prefix) :], "big") + 1
                await _feed(known.reader, piece)
    return known


async def _check_position(
    transaction: Transaction, log: RelaxedLog, domain: int, stored: int | None
) -> None:
    """Raises SQLError 40001 where another node has committed a change set meanwhile."""
    body = await transaction.get(log.position_key(domain))
    position = None if body is None else msgspec.msgpack.decode(body, type=int)
    if position != stored:
        raise SQLError(
            "40001",
            f'relaxed log "{log.name}" is at {position} of domain {domain:016x}, and not at '
            f"{stored}: it is loaded by another node too",
            hint="Send the lines again.",
        )


def _as_lines(batch: pa.RecordBatch) -> pa.Table:
    """Raises SQLError 42703 and 42804 where the columns are others."""
    table = pa.Table.from_batches([batch])
    unknown = set(table.column_names) - set(LINES.names)
    if unknown:
        raise SQLError(
            "42703",
            f'a relaxed log has no column "{min(unknown)}"',
            hint=f"Columns: {', '.join(LINES.names)}.",
        )
    for column in LINES:
        if column.name not in table.column_names:
            nulls = pa.nulls(table.num_rows, column.type)
            table = table.append_column(column.name, nulls)
    try:
        lines = table.select(LINES.names).cast(LINES)
    except pa.ArrowException as error:
        raise SQLError("42804", f"lines of a relaxed log: {error}") from None
    for name in ("kind", "domain", "id"):
        if lines.column(name).null_count:
            raise SQLError("23502", f'a line of a relaxed log has no "{name}"')
    return lines


def _last_id(lines: pa.Table) -> int:
    """The id of the lines behind which none of them is. NO_ID where they have no other."""
    ids = lines.column("id").filter(pc.not_equal(lines.column("id"), _uint64(NO_ID)))
    if not len(ids):
        return NO_ID
    base: int = (ids[0].as_py() - HALF // 2) & ID_MASK
    furthest = int(pc.max(pc.subtract(ids, _uint64(base))).as_py())
    return (base + furthest) & ID_MASK


def _needed(last: int, floor: int | None) -> bool:
    """Whether a reader that was at `floor` needs any of the lines up to an id."""
    if not floor:
        return floor is None or last != NO_ID
    return last != NO_ID and before(floor, last)


def _ahead(lines: pa.Table, floor: int | None) -> pa.Table:
    """The lines that a reader which was at `floor` still needs."""
    if not floor:
        return lines
    distance = pc.subtract(lines.column("id"), _uint64(floor))
    needed = pc.and_(pc.less(distance, _uint64(HALF)), pc.greater(distance, _uint64(0)))
    return lines.filter(needed)


def _uint64(value: int) -> pa.UInt64Scalar:
    return pa.scalar(value, pa.uint64())


def _encoded(piece: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, piece.schema) as writer:
        writer.write_table(piece)
    return sink.getvalue().to_pybytes()


def _told(error: RelaxedLogError) -> SQLError:
    if isinstance(error, PendingLimit):
        hint = f"Raise {PENDING_BYTES_MAX.name}, or let the store come to rest more often."
        return SQLError("53400", str(error), hint=hint)
    if isinstance(error, SurvivorError | TooManyEvents):
        return SQLError("55000", str(error), hint="Send a snapshot taken at quiescence.")
    return SQLError("22000", str(error))
