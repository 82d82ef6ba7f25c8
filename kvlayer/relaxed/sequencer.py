"""The sequencer of a domain: which epoch a batch is of, and when an epoch is closed.

A sequencer is *quiescent*, with no batch in flight, or *draining*: an older epoch, whose end is
fixed, waits for its batches, and a newer one accepts all others.

    state      event                                  next
    quiescent  a batch enters                         draining: the older epoch ends just behind
                                                      its id, the newer is empty
    draining   a batch enters                         the same; it is the newer's
    draining   the older epoch's last batch leaves    the older is published; the newer gets a fresh
                                                      id as its end, becomes the older and drains;
                                                      drained already, it is published at once
    draining   both have drained                      quiescent, when the last record published
                                                      counts zero; an empty epoch is published first
                                                      where it does not

So batches overlap only within an epoch or two adjacent ones, and two counts suffice for any number
of batches. Nothing is written between the begin and the end of an epoch that counts zero, and no
batch of the epoch before it is left, nor had one of the epoch behind it begun: at its end the store
was in the state that all events before it make.

The table does no I/O and reads no clock; times are given in nanoseconds. Batches are counted for
each *slot*, that is for each process, so that what a dead process leaves behind is known: its
epochs are closed *incomplete*, since it may have written what no event tells.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from .errors import LateCount
from .ids import NO_ID, before, following, just_behind, within

RECORDS_MAX = 3
"""What one step publishes at most: the older epoch, the newer, and an empty one."""


@dataclass(frozen=True, slots=True)
class ClosedEpoch:
    """A record to be published: `[begin, end)` counts so many events."""

    begin: int
    end: int
    count: int
    complete: bool


@dataclass(slots=True)
class Slot:
    """The batches in flight of one process, and the id of the first of them."""

    pid: int = 0
    older: int = 0
    newer: int = 0
    since: int = NO_ID

    @property
    def active(self) -> int:
        return self.older + self.newer


@dataclass(slots=True)
class _Epoch:
    """An epoch that is open: events counted, batches in flight, whether one of them died."""

    count: int = 0
    active: int = 0
    incomplete: bool = False


@dataclass(slots=True)
class Sequencer:
    """The state of a domain. Whoever calls it holds the domain's lock.

    `begin` is the end of the last epoch published, NO_ID before the first. `older_end` is NO_ID
    while quiescent. `busy_since` is when the state was last known to be quiescent; `holder` is the
    slot, plus one, for which new batches wait, so that it may look at the store at rest.
    `outbox` holds the records of the last step.
    """

    slots: list[Slot]
    last: int = NO_ID
    begin: int = NO_ID
    older_end: int = NO_ID
    older: _Epoch = field(default_factory=_Epoch)
    newer: _Epoch = field(default_factory=_Epoch)
    marked: bool = False
    busy_since: int = 0
    holder: int = 0
    outbox: list[ClosedEpoch] = field(default_factory=list)

    @property
    def quiescent(self) -> bool:
        return self.older_end == NO_ID

    def waits(self, now_ns: int, quiesce_within_ns: int) -> bool:
        """Whether new batches wait for quiescence: it is overdue, or somebody asked for it."""
        if self.holder:
            return True
        return not self.quiescent and now_ns - self.busy_since > quiesce_within_ns

    def enter(self, slot: int, now_ns: int) -> int:
        """A batch begins. Returns its id."""
        self.outbox = []
        id = self.last = following(self.last, now_ns)
        assert self.begin == NO_ID or not before(id, self.begin), (id, self.begin)
        owner = self.slots[slot]
        if not owner.active:
            owner.since = id
        if self.quiescent:
            self.older_end = self.last = just_behind(id)
            self.busy_since = now_ns
            self.older.active = owner.older = 1
        else:
            self.newer.active += 1
            owner.newer += 1
        return id

    def count(self, slot: int, id: int, events: int) -> None:
        """A batch in flight has made so many events more. Raises LateCount."""
        self.outbox = []
        epoch = self._epoch_of(slot, id)
        epoch.count += events

    def leave(self, slot: int, id: int, now_ns: int, *, complete: bool = True) -> None:
        """A batch has ended, and makes no event any more. Raises LateCount.

        It is not complete where an event could not be kept.
        """
        self.outbox = []
        epoch, owner = self._epoch_of(slot, id), self.slots[slot]
        epoch.active -= 1
        if epoch is self.older:
            owner.older -= 1
        else:
            owner.newer -= 1
        epoch.incomplete |= not complete
        self._drain(now_ns)

    def bury(self, slot: int, now_ns: int) -> None:
        """The process of a slot is dead: its batches have ended, and nobody knows what they did."""
        self.outbox = []
        dead = self.slots[slot]
        self.older.incomplete |= dead.older > 0
        self.newer.incomplete |= dead.newer > 0
        self.older.active -= dead.older
        self.newer.active -= dead.newer
        self.slots[slot] = Slot()
        if self.holder == slot + 1:
            self.holder = 0
        self._drain(now_ns)

    def _epoch_of(self, slot: int, id: int) -> _Epoch:
        owner = self.slots[slot]
        if not self.quiescent and (self.begin == NO_ID or not before(id, self.begin)):
            if within(id, self.begin, self.older_end):
                if owner.older:
                    return self.older
            elif owner.newer:
                return self.newer
        raise LateCount(f"batch {id} of slot {slot} is not in flight: its epoch is closed")

    def _drain(self, now_ns: int) -> None:
        while not self.quiescent and not self.older.active:
            self._publish()
            if self.marked:
                self.busy_since = now_ns
                if not self.newer.active and not self.newer.count and not self.newer.incomplete:
                    self.older_end, self.older, self.newer = NO_ID, _Epoch(), _Epoch()
                    return
            self.older_end = self.last = following(self.last, now_ns)
            self.older, self.newer = self.newer, _Epoch()
            for slot in self.slots:
                slot.older, slot.newer = slot.newer, 0

    def _publish(self) -> None:
        assert self.begin == NO_ID or before(self.begin, self.older_end), (self.begin, self)
        closed = ClosedEpoch(
            self.begin, self.older_end, self.older.count, not self.older.incomplete
        )
        self.marked = closed.count == 0 and closed.complete
        self.begin = self.older_end
        self.outbox.append(closed)
        assert len(self.outbox) <= RECORDS_MAX, self.outbox

    def check_invariants(self) -> None:
        """The whole state, for tests: two epochs at most, and every batch is of one of them."""
        assert self.older.active == sum(slot.older for slot in self.slots), self
        assert self.newer.active == sum(slot.newer for slot in self.slots), self
        if self.quiescent:
            assert self.older == _Epoch() == self.newer, self
        else:
            assert self.older.active, self
            assert self.begin == NO_ID or before(self.begin, self.older_end), self

    # As bytes, for memory that processes share

    def pack(self) -> bytes:
        """The state, in at most `packed_size` bytes."""
        older, newer = self.older, self.newer
        flags = self.marked | older.incomplete << 1 | newer.incomplete << 2
        fixed = _FIXED.pack(
            self.last, self.begin, self.older_end, older.count, newer.count, self.busy_since,
            older.active, newer.active, self.holder, flags, len(self.outbox), len(self.slots),
        )  # fmt: skip
        records = [
            _RECORD.pack(each.begin, each.end, each.count, each.complete) for each in self.outbox
        ]
        slots = [_SLOT.pack(each.pid, each.older, each.newer, each.since) for each in self.slots]
        return b"".join((fixed, *records, *slots))

    @classmethod
    def unpack(cls, data: bytes) -> Sequencer:
        (
            last, begin, older_end, older_count, newer_count, busy_since,
            older_active, newer_active, holder, flags, record_count, slot_count,
        ) = _FIXED.unpack_from(data)  # fmt: skip
        slots_at = _FIXED.size + record_count * _RECORD.size
        slots_end = slots_at + slot_count * _SLOT.size
        return cls(
            [Slot(*each) for each in _SLOT.iter_unpack(data[slots_at:slots_end])],
            last=last,
            begin=begin,
            older_end=older_end,
            older=_Epoch(older_count, older_active, bool(flags & 2)),
            newer=_Epoch(newer_count, newer_active, bool(flags & 4)),
            marked=bool(flags & 1),
            busy_since=busy_since,
            holder=holder,
            outbox=[
                ClosedEpoch(*each) for each in _RECORD.iter_unpack(data[_FIXED.size : slots_at])
            ],
        )


def packed_size(slot_count: int) -> int:
    """The bytes that a state of so many slots takes at most."""
    return _FIXED.size + slot_count * _SLOT.size + RECORDS_MAX * _RECORD.size


_FIXED = struct.Struct("<5Qq6I")
_SLOT = struct.Struct("<3I4xQ")
_RECORD = struct.Struct("<3Q?7x")
