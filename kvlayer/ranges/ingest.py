"""Ingest: what a replica's source asks of it, each order in steps of the store.

A version that is here already is dropped, so that a source may send again what it has no answer
to. Of one key the newest version is what a reader sees, whatever the order of arrival.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import assert_never

import msgspec

from .. import keys
from ..clock import EPOCH_UNIX_US, ZERO, Timestamp, duration, format_timestamp, timestamp_at
from ..command import EnginePut, LogicalOp, WriteVersions
from ..errors import FeedEnd
from ..mvcc import Header, encode_value
from ..rangefeed import Closing
from ..replication.leadership import Role
from ..replication.replica import (
    AHEAD_MAX,
    Begin,
    End,
    Ingest,
    Look,
    Open,
    ReplicaRefused,
    ReplicaState,
    SourceOrder,
)
from ..replication.replica_tasks import least_resolved, opened
from ..span import Span
from ..txn.limits import COMMAND_BYTES_MAX, COMMAND_ROWS_MAX, check_sizes
from ..txn.locks import Turn
from ..txn.steps import run_step
from .delivery import Ending
from .descriptor import resolved_key
from .range import Range
from .range_store import RangeStore
from .replica import Replica
from .reshape import split

TASKS_MAX = 256
"""Their records are one, which is written with each that moves."""


async def carry_out(store: RangeStore, span: Span, order: SourceOrder) -> ReplicaState | None:
    """Does what is asked of the replica that is `span`, durably, and says where it stands then.

    None when there never was a replica, which only `Look` takes. Raises ReplicaRefused, and
    KeyTooLarge, having taken nothing of what was sent, or whole commands from its front.
    """
    if isinstance(order, Look):
        found = find_replica(store, span)
        return None if found is None else _shown(found)
    if not isinstance(order, Ingest):
        state = await _step(store, span, order)
        await store.released(store.applied_index)
        return state
    taken = known = 0
    for place, part in enumerate(_parts(order)):
        if place:
            await asyncio.sleep(0)
        state = await _step(store, span, part)
        assert state is not None, order
        taken, known = taken + state.taken, known + state.known
    assert state is not None, order
    await store.released(store.applied_index)
    return msgspec.structs.replace(state, taken=taken, known=known)


async def _step(store: RangeStore, span: Span, order: SourceOrder) -> ReplicaState | None:
    def step(_: Turn | None) -> ReplicaState | None:
        match order:
            case Begin():
                return _begin(store, span)
            case Open():
                return _open(known_replica(store, span), order, store)
            case Ingest():
                return _ingest(known_replica(store, span), order, store)
            case End():
                return _end(known_replica(store, span), store)
            case Look():
                raise AssertionError(order)
            case _:
                assert_never(order)

    return await run_step(store, step, waiter=None, lock_timeout=None)


def find_replica(store: RangeStore, span: Span) -> Replica | None:
    """The replica that is `span`, or has been one."""
    return next((found for found in store.replicas if found.span == span), None)


def known_replica(store: RangeStore, span: Span) -> Replica:
    """As `find_replica`. Raises ReplicaRefused where there never was one."""
    found = find_replica(store, span)
    if found is None:
        raise ReplicaRefused("the keyspace is no replica: it is written by this store alone")
    return found


def _shown(found: Replica) -> ReplicaState:
    return msgspec.structs.replace(found.state, resolved=found.closed)


# Beginning and end.


def _begin(store: RangeStore, span: Span) -> ReplicaState:
    found = find_replica(store, span)
    if found is not None:
        return _shown(found)
    assert not any(other.span.overlaps(span) for other in store.replicas), (span, store.replicas)
    bounds = keys.VERSION + span.start, keys.VERSION + span.end
    if store.engine.first(*bounds) is not None:
        raise ReplicaRefused("the keyspace cannot become a replica: it holds versions of its own")
    for border in (span.start, span.end):
        split(store, border, ZERO)
    made = Replica(span, ReplicaState())
    reclose(store, span, made, [made.record(made.state)])
    store.replicas.append(made)
    return made.state


def _end(found: Replica, store: RangeStore) -> ReplicaState:
    if found.state.ended:
        return found.state
    newest = max(part.max_timestamp for part in store.ranges.overlapping(found.span))
    assert store.clock.last >= newest, (store.clock.last, newest)
    # Whom it was handed by has nothing more to say: it is a keyspace of this store's own.
    ended = msgspec.structs.replace(
        found.state, ended=True, note=b"", tasks=(), given_role=None, group="", term=0, leader=""
    )
    index = reclose(store, found.span, store.closed, [found.record(ended)])
    found.appended(index, ended)
    return ended


def reclose(store: RangeStore, span: Span, closed: Closing, facts: Sequence[EnginePut]) -> int:
    """Puts ranges that close by `closed` in the place of those of the span, in this step.

    What was resolved there before says nothing of a replica: it starts at zero.
    """
    old = list(store.ranges.overlapping(span))
    assert (old[0].span.start, old[-1].span.end) == (span.start, span.end), (old, span)
    new = [
        Range(
            found.descriptor,
            store.parts,
            store,
            thresholds=found.thresholds,
            load=found.load,
            closed=closed,
            max_timestamp=found.max_timestamp,
            persisted_resolved=found.persisted_resolved if closed.store_wide else ZERO,
            size=found.size,
        )
        for found in old
    ]
    operations: list[LogicalOp] = [
        EnginePut(resolved_key(found.id), keys.big_endian(found.persisted_resolved))
        for found in new
    ]
    endings = tuple(Ending(found, FeedEnd.MANUAL_RANGE_SPLIT) for found in old)
    index = store.propose_ending([*facts, *operations], endings)
    store.replace(old, new)
    return index


# Epochs and versions.


def _open(found: Replica, order: Open, store: RangeStore) -> ReplicaState:
    state = found.state
    _check_running(found)
    if state.source not in (None, order.source):
        raise ReplicaRefused(
            f"the replica has another source, {state.source}: {order.source} cannot be a second"
        )
    epoch, tasks, note = state.epoch + 1, state.tasks, state.note
    if order.task is not None:
        whole = order.whole or found.span
        if not (found.span.covers(whole) and whole.covers(order.task)):
            raise ReplicaRefused(
                "the task's keys are no part of its source's, or those no part of the keyspace"
            )
        tasks = opened(tasks, order.task, whole, epoch=epoch, resolved=state.resolved)
        if len(tasks) > TASKS_MAX:
            raise ReplicaRefused(f"a replica has at most {TASKS_MAX} tasks")
        note = b""
    elif tasks:
        tasks, note = (), b""
    state = msgspec.structs.replace(state, source=order.source, epoch=epoch, tasks=tasks, note=note)
    state = _resolved(state)
    found.appended(store.propose_plain([found.record(state)]), state)
    return state.seen_by(epoch)


def _resolved(state: ReplicaState) -> ReplicaState:
    """The state, with what all of its tasks have resolved."""
    if not state.tasks:
        return state
    resolved = max(state.resolved, least_resolved(state.tasks))
    return msgspec.structs.replace(state, resolved=resolved)


def _check_running(found: Replica) -> None:
    if found.state.given_role in (Role.LEADING, Role.DRAINING):
        raise ReplicaRefused(
            f"the keyspace is led here, in epoch {found.state.term}: it takes nothing of a store "
            "that led it before"
        )
    if found.state.ended:
        raise ReplicaRefused(
            "the replica was promoted: it is written by its own store now; of its source it has "
            f"everything up to {format_timestamp(found.state.resolved)}"
        )


@dataclass(slots=True)
class _Fresh:
    """The versions of an ingest that are not here yet."""

    keys: list[bytes]
    values: list[bytes]
    timestamps: list[Timestamp]


def _ingest(found: Replica, order: Ingest, store: RangeStore) -> ReplicaState:
    state = found.state
    _check_running(found)
    task = state.task(order.epoch)
    known_epoch = order.epoch == state.epoch if not state.tasks else task is not None
    if order.source != state.source or not known_epoch:
        store.metrics.add("kv_replica_stale_epochs_total")
        raise ReplicaRefused(
            f"epoch {order.epoch} of {order.source} is over: the replica is in epoch {state.epoch} "
            f"of {state.source}"
        )
    check_sizes(order.keys, order.bodies)
    _check_ahead(order, store)
    at = state.seen_by(order.epoch)
    fresh = _fresh(order, store, found.span if task is None else task.span, at.resolved)
    resolved = max(at.resolved, order.resolved or ZERO)
    # Here people read at times of the source, and what is written after the end is to be newer.
    store.clock.forward(max(resolved, *order.timestamps, ZERO))
    note = at.note if order.note is None else order.note
    if task is None:
        state = msgspec.structs.replace(state, resolved=resolved, note=note)
    else:
        moved = msgspec.structs.replace(task, resolved=resolved, note=note)
        tasks = tuple(moved if each is task else each for each in state.tasks)
        state = _resolved(msgspec.structs.replace(state, tasks=tasks))
    operations: list[LogicalOp] = []
    if fresh.keys:
        operations.append(WriteVersions(fresh.timestamps, fresh.keys, fresh.values))
    if state != found.state:
        operations.append(found.record(state))
    if operations:
        found.appended(store.propose(operations), state)
    store.metrics.add("kv_replica_versions_total", len(fresh.keys))
    known = len(order.keys) - len(fresh.keys)
    return msgspec.structs.replace(state.seen_by(order.epoch), taken=len(fresh.keys), known=known)


def _check_ahead(order: Ingest, store: RangeStore) -> None:
    ahead = duration(seconds=store.settings.get(AHEAD_MAX))
    physical = timestamp_at(unix_us=max(store.clock.physical.unix_us(), EPOCH_UNIX_US))
    newest = max(order.resolved or ZERO, *order.timestamps, ZERO)
    if newest > physical + ahead:
        raise ReplicaRefused(
            f"timestamp {format_timestamp(newest)} lies more than {AHEAD_MAX.name} above this "
            f"store's time, {format_timestamp(physical)}: one of the two clocks is wrong"
        )


def _fresh(order: Ingest, store: RangeStore, span: Span, resolved: Timestamp) -> _Fresh:
    """Sorts out the versions of `span` that are new; everything up to `resolved` is here. What lies
    above all that is here is looked for nowhere."""
    if not order.keys:
        return _Fresh([], [], [])
    for key in (min(order.keys), max(order.keys)):
        if not span.contains(key):
            raise ReplicaRefused(f"key {key.hex()} is none of the replica's, or of its task's")
    header = encode_value(b"", Header(origin=order.origin))
    versions, timestamps = order.keys, order.timestamps
    bodies = order.bodies
    if not _all_new(order, store, span, resolved):
        places = _new_places(order, store, span, resolved)
        versions = [versions[place] for place in places]
        bodies = [bodies[place] for place in places]
        timestamps = [timestamps[place] for place in places]
    return _Fresh(versions, [header + body for body in bodies], timestamps)


def _all_new(order: Ingest, store: RangeStore, span: Span, resolved: Timestamp) -> bool:
    """Whether the time index alone shows that no version is here and none comes too late."""
    written, timestamps = order.keys, order.timestamps
    oldest, newest = min(timestamps), max(timestamps)
    if oldest <= max(resolved, store.gc_threshold_of(span)):
        return False
    if len(set(zip(written, timestamps, strict=True))) < len(written):
        return False
    if oldest > max(part.max_timestamp for part in store.ranges.overlapping(span)):
        return True
    keyspaces = {key[: keys.KEYSPACE_LENGTH] for key in (min(written), max(written))}
    if len(keyspaces) > 1:
        return False
    bounds = keys.time_index_bounds(keyspaces.pop(), Timestamp(oldest - 1), newest)
    return store.engine.first(*bounds) is None


def _new_places(order: Ingest, store: RangeStore, span: Span, resolved: Timestamp) -> Sequence[int]:
    """The places of the versions that are not here. Raises ReplicaRefused where one comes too
    late."""
    threshold = store.gc_threshold_of(span)
    newest = max(part.max_timestamp for part in store.ranges.overlapping(span))
    places: list[int] = []
    seen: set[tuple[bytes, Timestamp]] = set()
    for place, (key, at) in enumerate(zip(order.keys, order.timestamps, strict=True)):
        if (key, at) in seen:
            continue
        if at <= newest and store.engine.get(keys.version_key(key, at)) is not None:
            continue
        if at <= resolved or at <= threshold:
            raise ReplicaRefused(
                f"an unknown version of key {key.hex()} at {format_timestamp(at)} is not above "
                f"what is resolved, {format_timestamp(resolved)}, or collected, "
                f"{format_timestamp(threshold)}"
            )
        seen.add((key, at))
        places.append(place)
    return places


def _parts(order: Ingest) -> Sequence[Ingest]:
    """The order, cut into what one step takes. The last says what is resolved."""
    cuts: list[int] = []
    start = size = 0
    for place, body in enumerate(order.bodies):
        size += len(body)
        if place > start and (place - start == COMMAND_ROWS_MAX or size > COMMAND_BYTES_MAX):
            cuts.append(place)
            start, size = place, len(body)
    borders = [0, *cuts, len(order.keys)]
    return [
        msgspec.structs.replace(
            order,
            keys=order.keys[low:high],
            bodies=order.bodies[low:high],
            timestamps=order.timestamps[low:high],
            resolved=order.resolved if high == len(order.keys) else None,
            note=order.note if high == len(order.keys) else None,
        )
        for low, high in pairwise(borders)
    ]
