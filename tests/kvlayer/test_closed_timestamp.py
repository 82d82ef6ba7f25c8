"""Closing: what holds the closed timestamp back, and for how long."""

from __future__ import annotations

from random import Random

import pytest

from tailrace.kvlayer.clock import Clock, MemoryBoundStore, Timestamp
from tailrace.kvlayer.closed_timestamp import ClosedTimestamps, lowest_timestamp
from tailrace.kvlayer.command import AbortTxn, Command, CommitIntent, WriteIntent, WriteValue
from tailrace.kvlayer.settings import Settings
from tests.harness.small_range import HandWall, moment

X, Y = b"x" * 16, b"y" * 16


class Closing:
    """Closed timestamps on a clock that is set by hand."""

    def __init__(self) -> None:
        self.wall = HandWall()
        self.clock = Clock(self.wall, MemoryBoundStore())
        self.timestamps = ClosedTimestamps(self.clock, Settings())

    def close_at(self, milliseconds: float) -> Timestamp:
        self.wall.milliseconds = milliseconds
        return self.timestamps.close()


def test_idle_store_closes_behind_clock() -> None:
    assert Closing().close_at(100) == moment(100) - 1


def test_closed_never_falls_with_the_wall_clock() -> None:
    closing = Closing()
    closed = closing.close_at(100)
    assert closing.close_at(50) > closed


def test_writer_holds_until_released() -> None:
    closing = Closing()
    closing.timestamps.hold(X, moment(50))
    assert closing.close_at(100) == moment(50) - 1
    closing.timestamps.release(X)
    assert closing.close_at(101) == moment(101) - 1


def test_writer_holds_for_target_duration() -> None:
    closing = Closing()
    closing.timestamps.hold(X, moment(1))
    assert closing.close_at(3000) == moment(1) - 1
    assert closing.close_at(3001) == moment(3001) - 1


def test_writing_again_holds_no_longer() -> None:
    closing = Closing()
    closing.timestamps.hold(X, moment(1))
    closing.close_at(2000)
    closing.timestamps.hold(X, moment(2000))
    assert closing.close_at(2999) == moment(2000) - 1
    closing.timestamps.hold(X, moment(2999))
    assert closing.close_at(3001) == moment(3001) - 1
    assert closing.timestamps.holder_count == 0


def test_pushed_writer_holds_where_it_stands() -> None:
    closing = Closing()
    closing.timestamps.hold(X, moment(50))
    closing.timestamps.hold(X, moment(80))
    assert closing.close_at(100) == moment(80) - 1


def test_unwritten_transaction_holds_twenty_milliseconds() -> None:
    closing = Closing()
    closing.timestamps.touch(X, moment(1))
    closing.close_at(20)
    closing.timestamps.touch(X)
    assert closing.timestamps.closed == moment(1) - 1
    assert closing.close_at(21) == moment(21) - 1


def test_first_write_begins_a_new_hold() -> None:
    closing = Closing()
    closing.timestamps.touch(X, moment(1))
    closing.close_at(30)
    closing.timestamps.hold(X, moment(31))
    assert closing.close_at(2000) == moment(31) - 1


def test_locker_below_closed_holds_nothing() -> None:
    closing = Closing()
    closing.close_at(100)
    closing.timestamps.hold(X, moment(50))
    assert closing.close_at(200) == moment(200) - 1
    closing.timestamps.hold(X, moment(201))
    assert closing.close_at(300) == moment(201) - 1


def test_undurable_entry_holds() -> None:
    closing = Closing()
    closing.timestamps.entry_appended(1, moment(60))
    closing.timestamps.entry_appended(2, None)
    closing.timestamps.entry_appended(3, moment(50))
    closing.timestamps.entry_appended(4, moment(70))
    assert closing.close_at(100) == moment(50) - 1
    closing.timestamps.entries_durable(2)
    assert closing.close_at(101) == moment(50) - 1
    closing.timestamps.entries_durable(3)
    assert closing.close_at(102) == moment(70) - 1
    closing.timestamps.entries_durable(4)
    assert closing.close_at(103) == moment(103) - 1


def test_write_below_closed_is_our_bug() -> None:
    closing = Closing()
    closed = closing.close_at(100)
    with pytest.raises(AssertionError):
        closing.timestamps.entry_appended(1, closed)


def test_lowest_timestamp_counts_what_is_new() -> None:
    command = Command(
        1,
        Timestamp(0),
        [
            AbortTxn(X),
            WriteValue(moment(9), [b"a"], [b"\x00"]),
            WriteIntent(Y, moment(7), 1, [b"b"], [b"\x00"]),
            CommitIntent(X, moment(5), [b"c"], [b"\x00"]),
        ],
    )
    assert lowest_timestamp(command) == moment(7)
    assert lowest_timestamp(Command(1, Timestamp(0), [AbortTxn(X)])) is None


@pytest.mark.parametrize("seed", range(20))
def test_closes_as_the_formula_says(seed: int) -> None:
    """Random holders and entries, against the formula computed from all of them each time."""
    random, closing = Random(seed), Closing()
    timestamps, wall = closing.timestamps, closing.wall
    holders: dict[bytes, tuple[Timestamp, float]] = {}
    entries: dict[int, Timestamp] = {}
    appended = greatest = 0
    for _ in range(500):
        wall.milliseconds += random.choice([0, 1, 40])
        holder = bytes((random.randrange(8),)) * 16
        action = random.randrange(5)
        if action == 0:
            ts = closing.clock.now()
            deadline = holders.get(holder, (ts, wall.milliseconds + 3000))[1]
            holders[holder] = (ts, deadline)
            timestamps.hold(holder, ts)
        elif action == 1:
            holders.pop(holder, None)
            timestamps.release(holder)
        elif action == 2:
            appended += 1
            entries[appended] = closing.clock.now()
            timestamps.entry_appended(appended, entries[appended])
        elif action == 3:
            upto = random.randint(0, appended)
            entries = {index: ts for index, ts in entries.items() if index > upto}
            timestamps.entries_durable(upto)
        else:
            closed = timestamps.close()
            holding = [ts for ts, deadline in holders.values() if deadline > wall.milliseconds]
            lowest = min([closing.clock.last, *holding, *entries.values()])
            greatest = max(greatest, lowest - 1)
            assert closed == greatest
