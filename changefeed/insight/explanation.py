"""The description of a changefeed before it exists: its spans, schema feed, sink, and initial scan.

The scan is estimated from its beginning: some rows are read and decoded, as it would, and the rest
is taken to be like them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.key_borders import pretty_key
from ...kvlayer.clock import Timestamp, format_timestamp
from ...schemafeed.polling import POLL_INTERVAL
from ..contract.changes import StageTimes
from ..contract.options import ChangefeedOptions, ScanChoice, SchemaFeedKind, parse_options
from ..contract.queries import FeedQuery
from ..jobs.create import FeedRequest
from ..jobs.services import DELEGATE, SCHEMA_FEED, ChangefeedServices, RangedStore
from ..pipeline.decode import decode, slice_rows
from ..sinks.kinds import AnyKind
from ..sinks.locations import in_schema
from ..sinks.worker import WorkerKind
from ..targets import FeedTarget, Versions

SAMPLED_ROWS = 2_000
"""The rows that a scan is estimated from: some hundredths of a second."""

VERSION_BYTES = 24
"""The bytes of a version beside its key and its body: prefix, timestamp, header."""

Fact = tuple[str, str]
"""A property, and its value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEstimate:
    """`rows` is exact where the sample was all there is, None where nobody can tell."""

    rows: int | None
    exact: bool
    seconds: float | None
    """The time of reading and decoding; a sink that takes longer sets the pace."""

    def __str__(self) -> str:
        if self.rows is None:
            return "its size is known on the node that has the store"
        about = "" if self.exact else "about "
        took = "" if self.seconds is None else f", {self.seconds:.1f} s to read and decode"
        return f"{about}{self.rows:,} row{'' if self.rows == 1 else 's'}{took}"


async def explain_feed(
    services: ChangefeedServices, request: FeedRequest, sink_uri: str | None
) -> list[Fact]:
    """The facts of a feed that would be created, those of the whole before those of each table."""
    options = parse_options(request.options, request.query)
    start_at = request.newest if options.cursor is None else options.cursor
    facts = [
        ("sink", _sink(services, sink_uri, options)),
        ("starts at", format_timestamp(start_at)),
        ("checkpoints", _checkpoints(services, options)),
    ]
    if request.query is not None:
        facts.append(("query", request.query.text))
        facts.append(("query reads", _read_by(request.query, request.tables[0])))
    if options.end_time is not None:
        facts.append(("ends at", format_timestamp(options.end_time)))
    for table, name in zip(request.tables, request.names, strict=True):
        target = services.target(table.id, request.keyspace)
        facts += [(f"{name}: {fact}", value) for fact, value in _reads(services, target, table)]
        facts += [(f"{name}: {fact}", value) for fact, value in _proofs(services, options, table)]
        if options.initial_scan is ScanChoice.NO:
            scan = f"none: changes above {format_timestamp(start_at)}"
        else:
            scan = str(await _estimate(services, target, table, start_at))
        facts.append((f"{name}: initial scan", scan))
    return facts


def _sink(services: ChangefeedServices, uri: str | None, options: ChangefeedOptions) -> str:
    if uri is None:
        return "this connection: rows and their progress end with it"
    kind: AnyKind = services.kinds.kind_of(uri)
    if options.mirror_schema is not None and "schema" in kind.obeys:
        uri = in_schema(uri, options.mirror_schema)
    shown = kind.redacted(uri)
    if isinstance(kind, WorkerKind):
        return f"{shown}: written by a worker of its own"
    keeps = "in one transaction with the rows: each change once"
    facts = [
        f"progress {keeps}"
        if kind.keeps_progress(options)
        else "progress behind the rows: at least once"
    ]
    facts.append("large batches as columns" if kind.columnar else "a message a row")
    if kind.follows(uri):
        facts.append(
            "follows schema changes, and is shown rows again only where they were rewritten"
        )
    if kind.local:
        facts.append(f"fed by node {services.node_id} alone, which has the file")
    return f"{shown}: {'; '.join(facts)}"


def _read_by(query: FeedQuery, table: TableDescriptor) -> str:
    if query.star:
        columns = "all columns"
    else:
        named = [each.name for each in table.visible_columns if each.id in query.columns]
        columns = f"{', '.join(named) or 'no column'}: others cause neither messages nor backfills"
    return f"{columns}{'; the row before each change' if query.previous else ''}"


def _checkpoints(services: ChangefeedServices, options: ChangefeedOptions) -> str:
    seconds = options.min_checkpoint_frequency
    if options.paced_when_idle and services.pace.seconds > seconds:
        return f"each {seconds:g} s; each {services.pace.seconds:.1f} s while it is idle"
    return f"each {seconds:g} s"


def _reads(
    services: ChangefeedServices, target: FeedTarget, table: TableDescriptor
) -> Sequence[Fact]:
    span = target.span
    facts = [("span", f"[{pretty_key(span.start, table)}, {pretty_key(span.end, table)})")]
    if isinstance(services.store, RangedStore):
        facts.append(("ranges", str(len(services.store.ranges(span)))))
    return facts


def _proofs(
    services: ChangefeedServices, options: ChangefeedOptions, table: TableDescriptor
) -> Sequence[Fact]:
    settings = services.store.settings
    kind = options.schema_feed or SchemaFeedKind(settings.get(SCHEMA_FEED))
    waits = {
        SchemaFeedKind.POLLING: f"rows wait for the next poll, up to "
        f"{settings.get(POLL_INTERVAL):g} s",
        SchemaFeedKind.RANGEFEED: "rows wait until the store has resolved their time: "
        "milliseconds, or as long as a transaction is open",
    }
    if kind is not SchemaFeedKind.LEASING:
        why = f"schema_feed = '{kind.value}' takes no leases; {waits[kind]}"
        return [("schema feed", kind.value), ("fast path", f"not taken: {why}")]
    if table.locked:
        why = (
            f"taken: version {table.version} is locked, and a lease on it proves every row at once"
        )
        return [("schema feed", kind.value), ("fast path", why)]
    delegate = SchemaFeedKind(settings.get(DELEGATE))
    why = (
        f"not taken: the table is not locked, so that its schema may change at any time; "
        f"{waits[delegate]}. ALTER TABLE {table.name} SET (changefeed_optimized = true) locks it"
    )
    return [("schema feed", f"{kind.value}, by {delegate.value}"), ("fast path", why)]


async def _estimate(
    services: ChangefeedServices, target: FeedTarget, table: TableDescriptor, at: Timestamp
) -> ScanEstimate:
    wall, store = services.store.clock.wall, services.store
    span = target.rows_span(table)
    sampled = sampled_bytes = spent_ns = absent = 0
    ended = True
    async with aclosing(store.snapshot(at).scan_slices(span)) as slices:
        began = wall.monotonic_ns()
        async for rows in slices:
            for first in range(0, len(rows), slice_rows(table)):
                part = rows[first : first + slice_rows(table)]
                versions = Versions([k for k, _ in part], [v for _, v in part], [at] * len(part))
                shown = target.present(versions, table)
                absent += shown.values.count(None)
                decode(shown, table, stages=StageTimes())
            sampled += len(rows)
            sampled_bytes += sum(len(key) + len(body) for key, body in rows)
            spent_ns += wall.monotonic_ns() - began
            if sampled >= SAMPLED_ROWS:
                ended = False
                break
            await asyncio.sleep(0)
            began = wall.monotonic_ns()
    seconds = spent_ns / 1e9
    if ended:
        return ScanEstimate(rows=sampled - absent, exact=True, seconds=seconds)
    size = await store.span_bytes(span) if isinstance(store, RangedStore) else None
    if size is None:
        return ScanEstimate(rows=None, exact=False, seconds=None)
    count = max(sampled, round(size / (sampled_bytes / sampled + VERSION_BYTES)))
    return ScanEstimate(rows=count, exact=False, seconds=seconds * count / sampled)
