"""Leadership of raw keyspaces: how one is handed from store to store, and who leads it.

    leadership = Leadership(store, Placements(oracle))
    await leadership.transfer(104, follower, "keyspace sessions of 127.0.0.1:8081")

A *placement* says who leads, and in which epoch. It lies in the oracle's store, under the name of
the keyspace's *group*, which is the *place* (store and id) where it was written first. A transfer:

    the leader     offers the placement to who knows a secret, whose hash it puts there
                   waits until the follower is near; then drains, and refuses writes
    the follower   is sent the rest and the secret, takes over, and swaps the placement for its own,
                   an epoch on
    the leader     sees the placement, and follows; or has swapped it first, and goes on leading

Each step is durable before the next begins. Whoever dies between two of them finds its role when it
is back, and `settle` ends it by the placement: of the two swaps only one can be done.

The secret is drawn for one transfer, and told to the follower alone, once nothing is written any
more. So nobody takes over what its leader does not hand over. It is kept nowhere: a leader that
dies with it takes the placement back, an epoch on, and offers it anew. A follower that is *taking
over* has shown it, in that epoch.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from ..access import StoreAccess
from ..clock import Timestamp, format_timestamp
from ..errors import FollowerAway, KVError, NotLeader, OracleAway, StoreUnreachable
from ..replication.leadership import Role
from ..replication.replica import (
    Drain,
    Follow,
    Lead,
    Look,
    Reclaim,
    ReplicaRefused,
    ReplicaState,
    TakeOver,
    source_of,
)
from ..span import Span
from .keyspace import RawKeyspace, keyspace_span

PLACEMENTS_ID = 1
"""The keyspace of the oracle's store that holds the placements. Those of users begin above."""

CATCH_UP_SECONDS_MAX = 30.0
"""How long a leader waits for the follower to come near, and, drained, to have everything."""

LOOK_SECONDS = 0.05
SETTLE_SECONDS = 1.0
"""Between two looks for roles that a crash or a silent oracle has left half changed."""


SECRET_BYTES = 32


class Placement(msgspec.Struct, array_like=True, frozen=True):
    """The leader of a keyspace: the place, and the epoch.

    `offer` is the SHA-256 of the secret with which the leader hands it over; empty, it does not.
    """

    leader: str
    epoch: int
    offer: bytes = b""

    def offered_by(self, secret: bytes) -> bool:
        """Whether that is the secret of the offer."""
        return hmac.compare_digest(_hash(secret), self.offer)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Placement)


def _encode(placement: Placement) -> bytes:
    """Encodes a placement. One without an offer has the bytes that it had before there were offers,
    for a swap compares bytes."""
    return _encoder.encode(placement if placement.offer else (placement.leader, placement.epoch))


def _hash(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


class Placements:
    """The placements that the oracle's store keeps. Calls raise what that store does."""

    def __init__(self, oracle: Callable[[], Awaitable[StoreAccess]]) -> None:
        """`oracle` is the store that is everybody's oracle: this one, where there is no other."""
        self._oracle = oracle

    async def store_id(self) -> str:
        return (await self._oracle()).id

    async def read(self, group: str) -> Placement | None:
        found = await (await self._keyspace()).get(group.encode())
        return None if found is None else _decoder.decode(found)

    async def swap(self, group: str, expected: Placement | None, new: Placement) -> bool:
        """Whether the placement was `expected` and is `new` now, durably."""
        found = await (await self._keyspace()).compare_and_swap(
            group.encode(),
            expected=None if expected is None else _encode(expected),
            value=_encode(new),
        )
        return found.swapped

    async def _keyspace(self) -> RawKeyspace:
        return RawKeyspace(await self._oracle(), PLACEMENTS_ID)


class Follower(Protocol):
    """The replica in another store that is to lead. Calls raise FollowerAway."""

    async def resolved(self) -> Timestamp:
        """Up to when it has everything."""
        ...

    async def take_over(self, order: TakeOver, oracle_id: str, secret: bytes) -> None:
        """Returns when it leads, its oracle being the store of that id. The `secret` is that of the
        leader's offer."""
        ...


class Leadership:
    """One store's part in the leadership of its keyspaces."""

    def __init__(self, store: StoreAccess, placements: Placements) -> None:
        self._store = store
        self._placements = placements
        self._busy: set[Span] = set()
        self._settling = asyncio.Lock()
        """Held by whoever settles: between its look and its step the role must not change."""

    def place(self, keyspace_id: int) -> str:
        """The name of this store's keyspace among all stores."""
        return source_of(self._store.id, keyspace_id)

    async def transfer(self, keyspace_id: int, follower: Follower, address: str) -> ReplicaState:
        """Hands the keyspace to the follower, which replicates it already, at `address`.

        Returns how this store stands then: following, or leading, where the follower did not take
        it. Raises NotLeader, FollowerAway, ReplicaRefused, OracleAway and what the oracle's store
        raises; then writes go on here, or go on as soon as the oracle answers.
        """
        span, place = keyspace_span(keyspace_id), self.place(keyspace_id)
        if span in self._busy:
            raise ReplicaRefused("the keyspace is being transferred already")
        self._busy.add(span)
        try:
            state = await self._store.replica(span, Look())
            if state is not None and state.role is not Role.LEADING:
                raise NotLeader(f"this store is {state.role.value}: it has nothing to hand over")
            group = (state.group if state is not None else "") or place
            secret = self._store.random.randbytes(SECRET_BYTES)
            placement = await self._offer(
                group, place, 0 if state is None else state.term, _hash(secret)
            )
            await _caught_up(follower, await self._store.now())
            oracle_id = await self._placements.store_id()
            drained = await self._store.replica(
                span, Drain(group=group, term=placement.epoch, leader=address)
            )
            assert drained is not None, span
            failure: FollowerAway | None = None
            try:
                await _caught_up(follower, drained.resolved)
                order = TakeOver(
                    source=place,
                    group=group,
                    term=placement.epoch + 1,
                    barrier=drained.resolved,
                )
                await follower.take_over(order, oracle_id, secret)
            except FollowerAway as error:
                failure = error  # it may have taken over all the same: the placement knows
            settled = await self.settle(keyspace_id)
            if failure is not None and settled.role is Role.LEADING:
                raise failure
            return settled
        except StoreUnreachable as error:
            raise OracleAway(
                f"the oracle, which keeps the placement, does not answer: {error}"
            ) from error
        finally:
            self._busy.discard(span)

    async def take_over(
        self, keyspace_id: int, order: TakeOver, oracle_id: str, secret: bytes
    ) -> ReplicaState:
        """Makes this store the keyspace's leader; what a leader that drains asks of its follower,
        with the secret of its offer. Asked again, it answers the same. Raises ReplicaRefused."""
        span = keyspace_span(keyspace_id)
        ours = await self._placements.store_id()
        if ours != oracle_id:
            raise ReplicaRefused(
                f"this store's oracle is {ours}, and the leader's is {oracle_id}: serve both with "
                "the same --oracle, or this one with the leader as its oracle"
            )
        async with self._settling:
            state = await self._store.replica(span, Look())
            if state is None or (state.role, state.term) not in (
                (Role.TAKING_OVER, order.term),
                (Role.LEADING, order.term),
            ):
                await self._check_offered(order, secret)
                await self._store.replica(span, order)
            settled = await self._settle(span, self.place(keyspace_id))
        if (settled.role, settled.term) != (Role.LEADING, order.term):
            raise ReplicaRefused(f"another store leads the keyspace, in epoch {settled.term}")
        return settled

    async def settle(self, keyspace_id: int) -> ReplicaState:
        """Ends a change of roles by what the placement says; the state that is settled.

        Raises what the oracle's store does: the role stays as it is, and is to be settled again.
        """
        async with self._settling:
            return await self._settle(keyspace_span(keyspace_id), self.place(keyspace_id))

    async def _settle(self, span: Span, place: str) -> ReplicaState:
        while True:
            state = await self._store.replica(span, Look())
            assert state is not None, span
            if state.role in (Role.LEADING, Role.FOLLOWING):
                return state
            found = await self._placements.read(state.group)
            if found is None:
                raise ReplicaRefused(
                    f"the oracle's store has lost the placement of {state.group}: restore it"
                )
            drains = state.role is Role.DRAINING
            undecided = state.term if drains else state.term - 1
            if found.epoch == undecided and found.leader == (place if drains else state.source):
                # Whoever swaps first decides it for both: here the leader of before, or the next.
                await self._placements.swap(state.group, found, Placement(place, found.epoch + 1))
            elif found.leader != place:
                await self._store.replica(span, Follow(source=found.leader, term=found.epoch))
            elif drains:
                await self._store.replica(span, Reclaim(found.epoch))
            else:
                await self._store.replica(span, Lead(found.epoch))

    async def settle_all(self, unsettled: Callable[[], list[int]]) -> None:
        """Settles what a crash has left, and what an oracle that did not answer, for ever.
        `unsettled` are the keyspaces whose role is between two others."""
        while True:
            for keyspace_id in unsettled():
                if keyspace_span(keyspace_id) not in self._busy:
                    with suppress(KVError):  # the next look tries again
                        await self.settle(keyspace_id)
            await asyncio.sleep(SETTLE_SECONDS)

    async def _offer(self, group: str, place: str, term: int, offer: bytes) -> Placement:
        """The placement, which is this store's and offered. Raises NotLeader where it is another's.

        An offer that is replaced had been made to nobody: who drains leaves its epoch.
        """
        while True:
            found = await self._placements.read(group)
            if found is None and term:
                raise ReplicaRefused(
                    f"the oracle's store has lost the placement of {group}: restore it"
                )
            if found is not None and (found.leader != place or found.epoch < term):
                raise NotLeader(
                    f"{found.leader} leads the keyspace, in epoch {found.epoch}, and this store "
                    "does not: it was put back from an older copy, or another was promoted in its "
                    "place"
                )
            offered = Placement(place, 1 if found is None else found.epoch, offer)
            if await self._placements.swap(group, found, offered):
                return offered

    async def _check_offered(self, order: TakeOver, secret: bytes) -> None:
        """Raises ReplicaRefused where it is not the leader that asks this store to lead."""
        found = await self._placements.read(order.group)
        if (
            found is None
            or (found.leader, found.epoch + 1) != (order.source, order.term)
            or not found.offered_by(secret)
        ):
            raise ReplicaRefused(
                f"{order.source} does not hand {order.group} over in epoch {order.term}, or not by "
                "this secret: say ALTER KEYSPACE … TRANSFER to the store that leads it"
            )


async def _caught_up(follower: Follower, upto: Timestamp) -> None:
    resolved = await follower.resolved()
    with suppress(TimeoutError):
        async with asyncio.timeout(CATCH_UP_SECONDS_MAX):
            while resolved < upto:
                await asyncio.sleep(LOOK_SECONDS)
                resolved = await follower.resolved()
    if resolved < upto:
        raise FollowerAway(
            f"the follower has everything up to {format_timestamp(resolved)}, and does not come to "
            f"{format_timestamp(upto)}: is it replicated?"
        )
