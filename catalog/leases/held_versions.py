"""The versions of one descriptor that a node knows, and what it may claim for each.

*Coverage* of a version `v` is the interval of timestamps for which the node may say that `v` is
valid:

    [modification(v), min(lease expiration, last acknowledged session expiration,
                          timestamp at which the lease row was deleted))

It is made of timestamps alone: a node that was stopped for a minute wakes up, draws a timestamp
past its session's acknowledged expiration, and finds it covered by nothing. A version read from
history has no lease row; it expires where its successor begins.

Worked example, with a session acknowledged up to 900:

    acquired v1 (modified at 100)               v1 covers [100, 900)
    v2 published at 200, notice: version seen 2 v1 still covers [100, 900): the two-version
                                                invariant lets it, and holds v3 off until v1's row
                                                is gone
    acquired v2                                 v2 covers [200, 900); v1 is retired
    v1's last reference released                its row is deleted, at 230: v1 covers [100, 230),
                                                and whoever keeps the `Lease` may go on saying so

The machine does no I/O and reads no clock: `LeaseManager` feeds it and carries out what it asks.
"""

from __future__ import annotations

from bisect import insort
from enum import Enum

from ...kvlayer.clock import MAX_TIMESTAMP, Timestamp, format_timestamp
from ..descriptors.descriptor import TableDescriptor
from .incarnation import Incarnation

NO_VERSION = 1 << 62
"""Above every version: retiring below it retires all."""


class RowState(Enum):
    """The state in the store of a lease row of a version that the node knows."""

    NONE = "none"  # read from history: there is no lease row
    HELD = "held"  # a lease row stands, and blocks the version after next
    DELETING = "deleting"  # on its way out; nobody refers to the version any more
    DELETED = "deleted"  # gone: coverage ended where it was deleted


# By themselves, for each statement: to find a member in its class takes sixteen times as long.
_NONE, _HELD = RowState.NONE, RowState.HELD


class HeldVersion:
    """A version of a descriptor in this node's memory, and how many leases refer to it."""

    __slots__ = (
        "canonical_until",
        "descriptor",
        "ended_at",
        "expires_at",
        "incarnation",
        "references",
        "row",
    )

    def __init__(
        self, descriptor: TableDescriptor, incarnation: Incarnation | None, expires_at: Timestamp
    ) -> None:
        assert descriptor.modification_time < expires_at, (descriptor, expires_at)
        self.descriptor = descriptor
        self.incarnation = incarnation
        self.expires_at = expires_at
        self.ended_at = expires_at
        self.canonical_until = descriptor.modification_time
        self.references = 0
        self.row = RowState.NONE if incarnation is None else RowState.HELD

    @property
    def version(self) -> int:
        return self.descriptor.version

    def coverage_end(self) -> Timestamp:
        """The first timestamp that is not covered. It may rise while the session does."""
        incarnation = self.incarnation
        if incarnation is not None and incarnation.expiration < self.ended_at:
            return incarnation.expiration
        return self.ended_at

    def covers(self, at: Timestamp) -> bool:
        return self.descriptor.modification_time <= at < self.coverage_end()

    def prove_canonical(self, until: Timestamp) -> None:
        """No successor was published at or below `until`, which may be told in any order."""
        self.canonical_until = max(self.canonical_until, until)

    def limit(self, expires_at: Timestamp) -> None:
        """The lease expires at `expires_at` at the latest.

        To be called before the row says so: once it does, others count on it.
        """
        self.expires_at = min(self.expires_at, expires_at)
        self.ended_at = min(self.ended_at, expires_at)

    def begin_delete(self, drawn: Timestamp) -> None:
        """The row is about to go, at a timestamp above `drawn`: claim no more than that for now."""
        assert self.row is RowState.HELD, self
        assert self.references == 0, self
        self.row = RowState.DELETING
        self.ended_at = min(self.expires_at, Timestamp(drawn + 1))

    def finish_delete(self, deleted_at: Timestamp) -> None:
        """The row went at `deleted_at`: what lies below stays provable."""
        assert self.row is RowState.DELETING, self
        self.row = RowState.DELETED
        assert self.ended_at <= deleted_at or self.ended_at == self.expires_at, (self, deleted_at)
        self.ended_at = min(self.expires_at, deleted_at)

    def __repr__(self) -> str:
        descriptor = self.descriptor
        return (
            f"<v{descriptor.version} of {descriptor.id} "
            f"[{format_timestamp(descriptor.modification_time)}, "
            f"{format_timestamp(self.coverage_end())}) "
            f"references={self.references} row={self.row.value}>"
        )


class Miss(Enum):
    """The acquisition or reading that would serve a timestamp which no held version covers."""

    ACQUIRE = "acquire"  # the newest version is wanted: read it and take a lease
    HISTORY = "history"  # an older one is: read it as of the timestamp, without a lease


class HeldVersions:
    """The held versions of one descriptor, ascending, and the greatest version heard of.

    `version_seen` may run ahead of what is held: a notice may arrive while an acquisition that
    read an older version is under way, and must not be lost. Versions below `retired_below` are
    to be let go as soon as nobody refers to them.
    """

    __slots__ = ("retired_below", "table_id", "version_seen", "versions")

    def __init__(self, table_id: int) -> None:
        self.table_id = table_id
        self.versions: list[HeldVersion] = []
        self.version_seen = 0
        self.retired_below = 0

    def find(self, at: Timestamp) -> HeldVersion | Miss:
        """The version that covers `at`, walking from the newest, or what it takes to get one."""
        found: HeldVersion | None = None
        for held in reversed(self.versions):
            if held.descriptor.modification_time > at:
                continue
            if found is not None and held.version != found.version:
                break
            if at < held.coverage_end():
                return self._unless_retired(held)
            found = held
        return self._miss(at)

    def _unless_retired(self, held: HeldVersion) -> HeldVersion | Miss:
        """A retired version serves only beneath a newer one: by itself it may be out of date."""
        retired = held.row is _HELD and held.descriptor.version < self.retired_below
        return Miss.ACQUIRE if retired and held is self.versions[-1] else held

    def _miss(self, at: Timestamp) -> Miss:
        newest = self.newest
        if newest is None or newest.descriptor.modification_time <= at:
            return Miss.ACQUIRE
        return Miss.HISTORY

    @property
    def newest(self) -> HeldVersion | None:
        """The newest version under a lease that is not retired."""
        for held in reversed(self.versions):
            if held.row is RowState.HELD and held.version >= self.retired_below:
                return held
        return None

    @property
    def leased_versions(self) -> frozenset[int]:
        """The versions that have a lease row in the store, as far as the node knows."""
        return frozenset(held.version for held in self.versions if held.row is RowState.HELD)

    def note(self, version: int) -> bool:
        """A version was heard of; says whether it is news. Notices may skip versions and repeat."""
        if version <= self.version_seen:
            return False
        self.version_seen = version
        return True

    def add_acquired(
        self, descriptor: TableDescriptor, incarnation: Incarnation, taken_at: Timestamp
    ) -> HeldVersion:
        """A lease row for `descriptor` stands in the store, where it was the newest at `taken_at`.
        Taking it twice is taking it once."""
        assert descriptor.id == self.table_id, (descriptor.id, self.table_id)
        for held in self.versions:
            if held.version == descriptor.version - 1:
                held.prove_canonical(Timestamp(descriptor.modification_time - 1))
            same = held.version == descriptor.version and held.incarnation is incarnation
            if same and held.row is RowState.HELD:
                held.prove_canonical(taken_at)
                return held
        held = HeldVersion(descriptor, incarnation, MAX_TIMESTAMP)
        held.prove_canonical(taken_at)
        insort(self.versions, held, key=lambda version: version.version)
        return held

    def add_history(self, descriptor: TableDescriptor, expires_at: Timestamp) -> HeldVersion:
        """A version read from history, valid up to `expires_at`: at most its successor's time."""
        held = HeldVersion(descriptor, None, expires_at)
        held.prove_canonical(Timestamp(expires_at - 1))
        insort(self.versions, held, key=lambda version: version.version)
        return held

    def retire(self, below: int) -> None:
        """Versions below `below` are out of date."""
        self.retired_below = max(self.retired_below, below)

    def release(self, held: HeldVersion) -> None:
        """Takes one reference off `held`."""
        assert held.references > 0, held
        held.references -= 1
        if held.row is _NONE and held.references == 0:
            self.versions = [other for other in self.versions if other is not held]

    def take_doomed(self) -> list[HeldVersion]:
        """The versions whose rows are to be deleted now; they leave the state."""
        doomed = [held for held in self.versions if self._doomed(held)]
        if doomed:
            self.versions = [held for held in self.versions if not self._doomed(held)]
        return doomed

    def _doomed(self, held: HeldVersion) -> bool:
        return (
            held.references == 0 and held.row is RowState.HELD and held.version < self.retired_below
        )

    def superseded(self) -> list[HeldVersion]:
        """The versions that are out of date, still used, and without an end of their own."""
        return [
            held
            for held in self.versions
            if held.references
            and held.row is RowState.HELD
            and held.version < self.retired_below
            and held.expires_at == MAX_TIMESTAMP
        ]

    def take_lost(self) -> list[HeldVersion]:
        """The versions whose incarnation is lost; they leave the state, referred to or not.

        Whoever holds a `Lease` on one keeps what it covered up to the incarnation's expiration.
        """
        lost = [held for held in self.versions if held.incarnation and held.incarnation.lost]
        self.versions = [held for held in self.versions if held not in lost]
        return lost

    def check_invariants(self) -> None:
        numbers = [held.version for held in self.versions]
        assert numbers == sorted(numbers), self.versions
        assert all(held.references >= 0 for held in self.versions), self.versions
        assert all(held.row in (RowState.NONE, RowState.HELD) for held in self.versions), self
        leased = [held for held in self.versions if held.row is RowState.HELD]
        unlimited = {held.version for held in leased if held.expires_at == MAX_TIMESTAMP}
        assert len(unlimited) <= 2, ("the two-version invariant is broken", self.versions)
        assert all(held.version <= self.version_seen for held in leased), self

    def __repr__(self) -> str:
        return f"<HeldVersions {self.table_id} seen={self.version_seen} {self.versions}>"
