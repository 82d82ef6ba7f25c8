"""Loading a relaxed log: lines in, change sets out, each of them one transaction.

What a call was told is taken is durable: lines that no change set has held yet lie in the log's own
keyspace, and go with the change set that holds them. Whoever sends a line twice has sent it once,
so a load that was cut off is resumed by sending all of it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Sequence
from dataclasses import dataclass, field

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
from ....kvlayer.relaxed.errors import PendingLimit, RelaxedLogError, SurvivorError, TooManyEvents
from ....kvlayer.relaxed.events import LINES, rows_where
from ....kvlayer.relaxed.ids import HALF
from ....kvlayer.relaxed.reader import ChangeSet, Gap, Reader
from ....kvlayer.settings import declare_int
from ....kvlayer.span import Span
from ...plan.needs import Need
from ...results.errors import from_kv
from ...runtime.authorization import require
from ...runtime.implicit import attempts, in_transaction
from ...runtime.relations import LeaseScope
from ...runtime.services import Services
from .relaxed_rows import apply_change_set

EVENTS_WANTED = 8000
"""Quiescence points are passed over until a change set has so many events. Folding them is one step
of the loop: some milliseconds."""

FED_ROWS = 5000
"""Lines that a reader takes in one step."""

PIECE_ROWS = 10_000
"""Lines of one pending value."""

PENDING_BYTES_MAX = declare_int(
    "relaxed.pending_bytes_max",
    256 * 1024 * 1024,
    "how many bytes of a relaxed log's events may wait for a quiescence point, of each domain",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaxedReport:
    """The outcome of a load."""

    lines: int
    change_sets: int
    commit_timestamp: Timestamp
    domains: Sequence[DomainState]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainState:
    """How far a domain's log is understood. `position` is None while no state is known, and
    `open_since` the begin of the epoch that has no record yet."""

    domain: int
    position: int | None
    pending: int
    open_since: int | None
    gaps: Sequence[Gap]


@dataclass(slots=True)
class _Domain:
    """A domain's reader, and the pending values that it has been given."""

    reader: Reader
    pieces: list[tuple[bytes, pa.Table]] = field(default_factory=list)
    next_number: int = 0


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

        Raises SQLError: 42704 for a log that is not there, 42501, and for lines that are refused;
        what came before them is taken.
        """
        log = await self.permit(name, user)
        taken, sets, last = 0, 0, ZERO
        domains: set[int] = set()
        async with self._locks.setdefault(log.id, asyncio.Lock()):
            async for batch in lines:
                table = _as_lines(batch)
                found = table.column("domain").unique().to_pylist()
                for domain in found:
                    assert isinstance(domain, int), domain
                    domains.add(domain)
                    of_domain = table
                    if len(found) > 1:
                        of_domain = rows_where(table, "domain", domain)
                    made, at = await self._take(log, domain, of_domain)
                    sets, last = sets + made, max(last, at)
                taken += table.num_rows
            states = [_state(domain, self._domains[log.id, domain].reader) for domain in domains]
        return RelaxedReport(lines=taken, change_sets=sets, commit_timestamp=last, domains=states)

    async def permit(self, name: str, user: str) -> RelaxedLog:
        """The log, where the user may load it. Raises SQLError 42704 and 42501."""
        log = await find_log(self._services.store.snapshot(await self._services.store.now()), name)
        await self._check_rights(log, user)
        return log

    async def states(self, name: str, *, user: str = ROOT) -> list[DomainState]:
        """How far each domain of a log is. Raises SQLError 42704 and 42501, as `load` does."""
        log = await self.permit(name, user)
        reader = self._services.store.snapshot(await self._services.store.now())
        return await domain_states(self._services, reader, log)

    def loaded_here(self) -> list[tuple[str, DomainState]]:
        """The logs that this node has in memory, by the names under which they were loaded."""
        return [
            (self._names[log_id], _state(domain, known.reader))
            for (log_id, domain), known in self._domains.items()
        ]

    async def _check_rights(self, log: RelaxedLog, user: str) -> None:
        """Whoever loads a log writes its tables."""
        services = self._services
        at = await services.store.now()
        for table_id in log.table_ids:
            table = await services.catalog.descriptors.read_at(table_id, at)
            assert table is not None, table_id
            needed = Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE
            await require(services, user, (Need(int(needed), securable(table)),))

    async def _take(self, log: RelaxedLog, domain: int, lines: pa.Table) -> tuple[int, Timestamp]:
        """Feeds a domain's reader, commits what change sets there are, keeps the rest."""
        self._names[log.id] = log.name
        known = self._domains.get((log.id, domain))
        if known is None:
            known = await load_domain(self._services, log, domain)
            self._domains[log.id, domain] = known
        sets, last = 0, ZERO
        try:
            for start in range(0, lines.num_rows, FED_ROWS):
                known.reader.feed(lines.slice(start, FED_ROWS))
                await asyncio.sleep(0)
            for change_set in known.reader.advance(events_min=EVENTS_WANTED):
                last = await self._commit(log, change_set)
                sets += 1
                await asyncio.sleep(0)
            await self._keep(log, domain, known, lines)
        except BaseException as error:
            # What it has taken in is forgotten: what is durable is read again.
            del self._domains[log.id, domain]
            if isinstance(error, RelaxedLogError):
                raise _told(error) from error
            if isinstance(error, KVError):
                raise from_kv(error) from error
            raise
        return sets, last

    async def _commit(self, log: RelaxedLog, change_set: ChangeSet) -> Timestamp:
        """One transaction: the rows, and that they are there."""
        services = self._services
        key = log.position_key(change_set.domain)

        async def work(transaction: Transaction, scope: LeaseScope) -> None:
            await _check_position(transaction, log, key, change_set)
            at = transaction.read_timestamp
            tables: dict[str, TableDescriptor] = {}
            for table_id in log.table_ids:
                table = await scope.table(table_id, at)
                tables[table.name] = table
            await apply_change_set(services, tables, change_set, transaction, at)
            await transaction.put([key], [msgspec.msgpack.encode(change_set.end)])

        _, at, _ = await attempts(
            services,
            lambda scope: in_transaction(
                services.store, scope, lambda transaction: work(transaction, scope)
            ),
        )
        return at

    async def _keep(self, log: RelaxedLog, domain: int, known: _Domain, lines: pa.Table) -> None:
        """Makes the lines durable that no change set has held, and lets go of those it has."""
        store, floor = self._services.store, known.reader.floor
        gone = [key for key, piece in known.pieces if not _ahead(piece, floor).num_rows]
        known.pieces = [(key, piece) for key, piece in known.pieces if key not in gone]
        left, puts = _ahead(lines, floor), dict[bytes, bytes]()
        for start in range(0, left.num_rows, PIECE_ROWS):
            piece = left.slice(start, PIECE_ROWS)
            key = log.pending_prefix(domain) + known.next_number.to_bytes(8, "big")
            known.next_number += 1
            known.pieces.append((key, piece))
            puts[key] = _encoded(piece)
        if floor is not None and gone:
            puts[log.position_key(domain)] = msgspec.msgpack.encode(floor)
        if puts or gone:

            def evaluate(evaluation: Evaluation) -> None:
                evaluation.delete(gone)
                evaluation.put(list(puts), list(puts.values()))

            await store.one_phase(evaluate)


async def load_domain(services: Services, log: RelaxedLog, domain: int) -> _Domain:
    """Returns a domain's reader at its durable position."""
    reader = services.store.snapshot(await services.store.now())
    return await _read_domain(services, reader, log, domain)


async def domain_states(
    services: Services, reader: DescriptorReader, log: RelaxedLog
) -> list[DomainState]:
    """Returns the durable position of each domain of the log."""
    domains = set()
    start = len(log.prefix) + 1
    for key, _ in await reader.scan(Span.prefix(log.prefix)):
        domains.add(int.from_bytes(key[start : start + 8], "big"))
    states = []
    for domain in sorted(domains):
        known = await _read_domain(services, reader, log, domain)
        try:
            for _ in known.reader.advance():
                break  # a change set that is being committed
        except RelaxedLogError:
            pass  # whoever sent it was told
        states.append(_state(domain, known.reader))
    return states


async def _read_domain(
    services: Services, reader: DescriptorReader, log: RelaxedLog, domain: int
) -> _Domain:
    body = await reader.get(log.position_key(domain))
    position = None if body is None else msgspec.msgpack.decode(body, type=int)
    bound = services.store.settings.get(PENDING_BYTES_MAX)
    known = _Domain(Reader(domain, position, pending_bytes_max=bound))
    prefix = log.pending_prefix(domain)
    for key, value in await reader.scan(Span.prefix(prefix)):
        piece = pa.ipc.open_stream(value).read_all()
        known.pieces.append((key, piece))
        known.next_number = int.from_bytes(key[len(prefix) :], "big") + 1
        known.reader.feed(piece)
    return known


async def _check_position(
    transaction: Transaction, log: RelaxedLog, key: bytes, change_set: ChangeSet
) -> None:
    """Raises SQLError 40001 where another node has committed a change set meanwhile."""
    body = await transaction.get(key)
    position = None if body is None else msgspec.msgpack.decode(body, type=int)
    if position != change_set.begin and not change_set.snapshot:
        raise SQLError(
            "40001",
            f'relaxed log "{log.name}" is at {position} of domain {change_set.domain:016x}, and '
            f"not at {change_set.begin}: it is loaded by another node too",
            hint="Send the lines again.",
        )


def _state(domain: int, reader: Reader) -> DomainState:
    gaps = reader.gaps()
    return DomainState(
        domain=domain,
        position=reader.position,
        pending=reader.pending_count,
        open_since=reader.open_since,
        gaps=gaps,
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


def _ahead(lines: pa.Table, floor: int | None) -> pa.Table:
    """The lines that a reader which was at `floor` still needs."""
    if floor is None:
        return lines
    distance = pc.subtract(lines.column("id"), pa.scalar(floor, pa.uint64()))
    needed = pc.and_(
        pc.less(distance, pa.scalar(HALF, pa.uint64())),
        pc.greater(distance, pa.scalar(0, pa.uint64())),
    )
    return lines.filter(needed)


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
