"""Leadership's steps: what each change of a store's role does to its ranges and its clock.

A store that hands a keyspace over turns its ranges into a replica's: they close by what they hold,
and by the store's clock no more. So nothing that the next leader writes lies below what feeds here
were told; and who has everything up to `resolved` has everything.

    leading, closed 118   k@120 m@130          barrier 130, the greatest of the ranges' timestamps
    draining              resolved 130         k@131 is refused: not the leader
    the follower          resolved 130         its clock goes above 130, and it leads
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from ..clock import ZERO, Timestamp, format_timestamp
from ..replication.leadership import Event, Role, next_role
from ..replication.replica import (
    Drain,
    Follow,
    Lead,
    Reclaim,
    ReplicaRefused,
    ReplicaState,
    RoleChange,
    TakeOver,
)
from ..span import Span
from ..txn.locks import Turn
from ..txn.steps import run_step
from .ingest import find_replica, known_replica, reclose
from .range_store import RangeStore
from .replica import Replica
from .reshape import split


async def change_role(store: RangeStore, span: Span, order: RoleChange) -> ReplicaState:
    """Changes the role durably, and says where the span stands then.

    Raises ReplicaRefused, having changed nothing, where the role has no such step, the order is of
    a term that is over, or who is to lead lacks something.
    """

    def step(_: Turn | None) -> ReplicaState:
        match order:
            case Drain():
                return _drain(store, span, order)
            case Reclaim():
                return _lead(store, known_replica(store, span), Event.RECLAIM, order.term)
            case Lead():
                return _lead(store, known_replica(store, span), Event.LEAD, order.term)
            case TakeOver():
                return _take_over(store, known_replica(store, span), order)
            case Follow():
                return _follow(store, known_replica(store, span), order)
            case _:
                assert_never(order)

    state = await run_step(store, step, waiter=None, lock_timeout=None)
    await store.released(store.applied_index)
    return state


def _next(state: ReplicaState, event: Event, term: int) -> Role:
    role = next_role(state.role, event)
    if role is None:
        raise ReplicaRefused(f"a store that is {state.role.value} cannot {event.value}")
    if term < state.term:
        raise ReplicaRefused(f"epoch {term} is over: the keyspace is in epoch {state.term}")
    return role


def _greatest(store: RangeStore, span: Span) -> Timestamp:
    """At or above all versions of the span: the Region-Max-TS of its ranges."""
    return max(part.max_timestamp for part in store.ranges.overlapping(span))


def _drain(store: RangeStore, span: Span, order: Drain) -> ReplicaState:
    found = find_replica(store, span)
    known = found is not None
    state = ReplicaState(ended=True) if found is None else found.state
    role = _next(state, Event.DRAIN, order.term)
    for border in (span.start, span.end):
        split(store, border, ZERO)
    if found is None:
        found = Replica(span, ReplicaState())
    state = msgspec.structs.replace(
        state,
        source=None,
        resolved=max(state.resolved, store.closed.closed, _greatest(store, span)),
        note=b"",
        tasks=(),
        ended=False,
        given_role=role,
        group=order.group,
        term=order.term,
        leader=order.leader,
    )
    found.appended(reclose(store, span, found, [found.record(state)]), state)
    if not known:
        store.replicas.append(found)
    return state


def _lead(store: RangeStore, found: Replica, event: Event, term: int) -> ReplicaState:
    state = found.state
    role = _next(state, event, term)
    store.clock.forward(max(state.resolved, _greatest(store, found.span)))
    state = msgspec.structs.replace(
        state, ended=True, note=b"", tasks=(), given_role=role, term=term, leader=""
    )
    found.appended(reclose(store, found.span, store.closed, [found.record(state)]), state)
    return state


def _take_over(store: RangeStore, found: Replica, order: TakeOver) -> ReplicaState:
    state = found.state
    role = _next(state, Event.TAKE_OVER, order.term)
    if state.source != order.source:
        raise ReplicaRefused(f"the replica's source is {state.source}, and not {order.source}")
    if order.term == state.term:
        raise ReplicaRefused(f"epoch {order.term} is another leader's")
    if state.resolved < order.barrier:
        raise ReplicaRefused(
            f"the replica has everything up to {format_timestamp(state.resolved)}, and its leader "
            f"has written up to {format_timestamp(order.barrier)}"
        )
    return _keep(
        store,
        found,
        msgspec.structs.replace(state, given_role=role, group=order.group, term=order.term),
    )


def _follow(store: RangeStore, found: Replica, order: Follow) -> ReplicaState:
    state = found.state
    role = _next(state, Event.FOLLOW, order.term)
    return _keep(
        store,
        found,
        msgspec.structs.replace(
            state,
            source=order.source,
            epoch=state.epoch + 1,
            note=state.note if order.source == state.source else b"",
            tasks=(),
            given_role=role,
            term=order.term,
        ),
    )


def _keep(store: RangeStore, found: Replica, state: ReplicaState) -> ReplicaState:
    found.appended(store.propose_plain([found.record(state)]), state)
    return state
