"""The sequencer's state table."""

import pytest

from tailrace.kvlayer.relaxed.errors import LateCount
from tailrace.kvlayer.relaxed.ids import stamped
from tailrace.kvlayer.relaxed.sequencer import ClosedEpoch, Sequencer, Slot

NOW = 1_700_000_000 * 10**9


def _sequencer(slots: int = 1) -> Sequencer:
    return Sequencer([Slot(pid=index + 1) for index in range(slots)])


def test_lone_batch_is_an_epoch_and_a_mark() -> None:
    sequencer = _sequencer()
    id = sequencer.enter(0, NOW)
    assert id == stamped(NOW)
    sequencer.count(0, id, 3)
    sequencer.leave(0, id, NOW)
    epoch, mark = sequencer.outbox
    assert epoch == ClosedEpoch(0, id + 1, 3, True)
    assert mark == ClosedEpoch(id + 1, id + 2, 0, True)
    assert sequencer.quiescent and sequencer.begin == mark.end


def test_batch_without_events_is_its_own_mark() -> None:
    """An empty epoch is published unless the last one was."""
    sequencer = _sequencer()
    sequencer.leave(0, sequencer.enter(0, NOW), NOW)
    assert [closed.count for closed in sequencer.outbox] == [0]
    assert sequencer.quiescent


def test_overlapping_batches_are_of_adjacent_epochs() -> None:
    sequencer = _sequencer()
    first, second = sequencer.enter(0, NOW), sequencer.enter(0, NOW)
    sequencer.count(0, first, 1)
    sequencer.count(0, second, 2)
    sequencer.leave(0, first, NOW)
    assert [closed.count for closed in sequencer.outbox] == [1]
    third = sequencer.enter(0, NOW)
    sequencer.count(0, third, 4)
    sequencer.leave(0, third, NOW)
    assert sequencer.outbox == []
    sequencer.leave(0, second, NOW)
    assert [closed.count for closed in sequencer.outbox] == [2, 4, 0]
    begins = [closed.begin for closed in sequencer.outbox]
    ends = [closed.end for closed in sequencer.outbox]
    assert begins[1:] == ends[:-1]


def test_busy_epoch_is_no_mark() -> None:
    """What counts is no quiescence point, whatever the state behind it."""
    sequencer = _sequencer()
    first, second = sequencer.enter(0, NOW), sequencer.enter(0, NOW)
    sequencer.count(0, first, 1)
    sequencer.leave(0, first, NOW)
    assert not sequencer.marked
    sequencer.leave(0, second, NOW)
    assert [closed.count for closed in sequencer.outbox] == [0]
    assert sequencer.marked and sequencer.quiescent


def test_late_count_is_refused() -> None:
    sequencer = _sequencer()
    id = sequencer.enter(0, NOW)
    sequencer.leave(0, id, NOW)
    other = sequencer.enter(0, NOW)
    with pytest.raises(LateCount, match=f"batch {id}"):
        sequencer.count(0, id, 1)
    sequencer.leave(0, other, NOW)
    with pytest.raises(LateCount):
        sequencer.count(0, other, 1)


def test_dead_owners_epoch_is_incomplete() -> None:
    sequencer = _sequencer(2)
    id, other = sequencer.enter(0, NOW), sequencer.enter(1, NOW)
    sequencer.count(0, id, 7)
    sequencer.bury(0, NOW)
    assert [(closed.count, closed.complete) for closed in sequencer.outbox] == [(7, False)]
    sequencer.leave(1, other, NOW)
    assert [(closed.count, closed.complete) for closed in sequencer.outbox] == [(0, True)]
    assert sequencer.quiescent and sequencer.slots[0] == Slot()


def test_dead_owner_without_a_batch_harms_nobody() -> None:
    sequencer = _sequencer(2)
    id = sequencer.enter(1, NOW)
    sequencer.bury(0, NOW)
    sequencer.leave(1, id, NOW)
    assert all(closed.complete for closed in sequencer.outbox)


def test_overdue_quiescence_makes_batches_wait() -> None:
    sequencer = _sequencer()
    id = sequencer.enter(0, NOW)
    assert not sequencer.waits(NOW + 10, 10)
    assert sequencer.waits(NOW + 11, 10)
    sequencer.leave(0, id, NOW + 12)
    assert not sequencer.waits(NOW + 13, 10)


def test_state_survives_as_bytes() -> None:
    sequencer = _sequencer(3)
    first = sequencer.enter(1, NOW)
    sequencer.enter(2, NOW)
    sequencer.count(1, first, 5)
    sequencer.bury(2, NOW)
    sequencer.leave(1, first, NOW)
    assert Sequencer.unpack(sequencer.pack() + bytes(9)) == sequencer
