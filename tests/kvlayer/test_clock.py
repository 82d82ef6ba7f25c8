"""The hybrid logical clock."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.kvlayer.clock import (
    BOUND_AHEAD_US,
    EPOCH_UNIX_US,
    LOGICAL_MASK,
    MAX_TIMESTAMP,
    RETRY_NS,
    ZERO,
    Clock,
    MemoryBoundStore,
    Timestamp,
    duration,
    format_timestamp,
    parse_timestamp,
    seconds_between,
    timestamp_at,
    unix_us,
)
from tailrace.kvlayer.errors import ClockStopped
from tailrace.kvlayer.metrics import Metrics
from tailrace.kvlayer.settings import Settings

NOON = 1_767_268_800_000_000


class Hands:
    """A wall clock that stands where it is put."""

    def __init__(self, unix_us: int = NOON) -> None:
        self.now = unix_us
        self.passed_ns = 0

    def unix_us(self) -> int:
        return self.now

    def monotonic_ns(self) -> int:
        return self.passed_ns

    def pass_us(self, us: int) -> None:
        """Time passes, and the wall shows it. (To change `now` alone is a jump.)"""
        self.now += us
        self.passed_ns += 1000 * us


class FullDisk(MemoryBoundStore):
    """A bound store that can fail."""

    full = False
    refused_count = 0

    def save(self, bound: Timestamp) -> None:
        if self.full:
            self.refused_count += 1
            raise OSError("disk full")
        super().save(bound)


@given(st.integers(EPOCH_UNIX_US, EPOCH_UNIX_US + (1 << 51) - 1), st.integers(0, LOGICAL_MASK))
def test_text_form_reads_back(wall: int, logical: int) -> None:
    ts = timestamp_at(unix_us=wall, logical=logical)
    assert 0 <= ts <= MAX_TIMESTAMP
    assert unix_us(ts) == wall
    assert parse_timestamp(format_timestamp(ts)) == ts


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1.2.3",
        "-1700000000000000000",
        "1700000000000000001",
        "1700000000000000000.5000",
        "1",
        "1e18",
        "9" * 19,
    ],
)
def test_bad_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"timestamp|microsecond|outside"):
        parse_timestamp(text)


def test_draws_are_unique_and_ascending() -> None:
    wall = Hands()
    clock = Clock(wall, MemoryBoundStore())
    drawn = []
    for step in (0, 0, 5, -1_000_000, 0, 7, 2_000_000, 0):
        wall.now += step
        drawn += [clock.now() for _ in range(3)]
    assert drawn == sorted(set(drawn))
    assert clock.last == drawn[-1]


def test_logical_part_carries_into_the_physical() -> None:
    clock = Clock(Hands(), MemoryBoundStore())
    drawn = [clock.now() for _ in range(LOGICAL_MASK + 3)]
    assert unix_us(drawn[0]) == NOON
    assert unix_us(drawn[-1]) == NOON + 1
    assert drawn == sorted(set(drawn))


@given(st.lists(st.integers(-20_000_000, 20_000_000), max_size=12))
def test_restarts_never_repeat(jumps: list[int]) -> None:
    wall, bounds, last = Hands(), MemoryBoundStore(), ZERO
    for jump in jumps:
        clock = Clock(wall, bounds)
        for _ in range(3):
            drawn = clock.now()
            assert last < drawn < bounds.load()
            last = drawn
            wall.now += jump // 3


def test_restart_continues_above_the_bound() -> None:
    bounds = MemoryBoundStore()
    last = Clock(Hands(), bounds).now()
    back = Clock(Hands(NOON - 3_600_000_000), bounds)
    assert back.now() > last
    assert seconds_between(last, back.last) <= BOUND_AHEAD_US / 1_000_000 + 1


def test_clock_stands_while_its_bound_cannot_be_kept() -> None:
    """Below the bound it has, and each draw is greater than the one before all the same."""
    wall, bounds = Hands(), FullDisk()
    clock = Clock(wall, bounds)
    first = clock.now()
    bounds.full = True
    wall.pass_us(2 * BOUND_AHEAD_US)
    draws = [clock.now() for _ in range(5000)]
    assert clock.stands
    assert draws == sorted(set(draws))
    assert first < draws[0] < draws[-1] < bounds.load()
    bounds.full = False
    wall.pass_us(RETRY_NS // 1000)
    assert seconds_between(first, clock.now()) == pytest.approx(20.25)
    assert not clock.stands


def test_full_disk_is_not_asked_at_each_draw() -> None:
    wall, bounds = Hands(), FullDisk()
    clock = Clock(wall, bounds)
    clock.now()
    bounds.full = True
    wall.pass_us(2 * BOUND_AHEAD_US)
    for _ in range(100):
        clock.now()
    assert not clock.bound_due
    assert bounds.refused_count == 1


def test_first_draw_fails_when_no_bound_can_be_kept() -> None:
    bounds = FullDisk()
    clock = Clock(Hands(), bounds)
    bounds.full = True
    with pytest.raises(ClockStopped, match="disk full"):
        clock.now()
    assert clock.last == ZERO
    bounds.full = False
    assert clock.now() > ZERO


def test_forward_moves_later_draws() -> None:
    clock = Clock(Hands(), MemoryBoundStore())
    ahead = Timestamp(clock.now() + duration(seconds=60))
    assert clock.forward(ahead)
    assert not clock.forward(ahead)
    assert clock.now() > ahead


def test_bound_is_extended_before_it_is_needed() -> None:
    wall, bounds = Hands(), FullDisk()
    clock = Clock(wall, bounds)
    wall.pass_us(2 * BOUND_AHEAD_US)
    clock.now()
    assert not clock.bound_due
    wall.pass_us(BOUND_AHEAD_US * 3 // 4)
    clock.now()
    assert clock.bound_due
    clock.extend()
    assert not clock.bound_due
    bounds.full = True
    wall.pass_us(BOUND_AHEAD_US // 2)
    clock.now()  # needs no write


class SlowDisk(MemoryBoundStore):
    """Remembers each bound, and lets other threads run while it saves."""

    def __init__(self) -> None:
        super().__init__()
        self.saved: list[Timestamp] = []

    def save(self, bound: Timestamp) -> None:
        for _ in range(20):
            time.sleep(0)  # gives the lock of the interpreter away
        self.saved.append(bound)
        super().save(bound)


def test_bounds_saved_by_two_threads_ascend() -> None:
    wall, bounds = Hands(), SlowDisk()
    clock = Clock(wall, bounds)

    def extend_often() -> None:
        for _ in range(200):
            clock.extend()

    threads = [threading.Thread(target=extend_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        wall.now += BOUND_AHEAD_US // 3
        assert clock.now() < bounds.load()
    for thread in threads:
        thread.join()
    assert bounds.saved == sorted(set(bounds.saved))


HOUR_US = 3_600_000_000


def refused_seconds(clock: Clock) -> float:
    metrics = Metrics()
    clock.physical.report(metrics)
    return metrics.get("kv_clock_refused_seconds")


@pytest.mark.parametrize("jump_us", [HOUR_US, -HOUR_US, 10_000 * HOUR_US])
def test_wall_that_jumps_is_not_believed(jump_us: int) -> None:
    wall = Hands()
    clock = Clock(wall, MemoryBoundStore())
    before = clock.now()
    wall.now += jump_us
    wall.pass_us(2_000_000)
    assert seconds_between(before, clock.now()) == 2.0
    assert refused_seconds(clock) == jump_us / 1e6
    wall.now -= jump_us
    wall.pass_us(1_000_000)
    assert seconds_between(before, clock.now()) == 3.0
    assert refused_seconds(clock) == 0


def test_wall_that_is_slewed_is_followed() -> None:
    wall = Hands()
    clock = Clock(wall, MemoryBoundStore())
    before = clock.now()
    for _ in range(100):
        wall.pass_us(1_000_000)
        wall.now += 100_000
        clock.now()
    assert seconds_between(before, clock.now()) == pytest.approx(110.0)


def test_offset_is_a_setting() -> None:
    wall, settings = Hands(), Settings()
    clock = Clock(wall, MemoryBoundStore())
    clock.physical.obey(settings)
    before = clock.now()
    wall.now += HOUR_US
    settings.set("kv.clock.max_offset", "2h")
    assert seconds_between(before, clock.now()) == 3600.0


def test_wall_set_back_before_a_restart_is_not_waited_for() -> None:
    wall, bounds = Hands(), MemoryBoundStore()
    last = Clock(wall, bounds).now()
    wall.now -= HOUR_US
    clock = Clock(wall, bounds)
    first = clock.now()
    wall.pass_us(5_000_000)
    assert first > last
    assert seconds_between(first, clock.now()) == pytest.approx(5.0, abs=0.001)


def test_store_that_was_closed_begins_at_its_last_timestamp() -> None:
    wall, bounds = Hands(), MemoryBoundStore()
    last = ZERO
    for _ in range(20):
        clock = Clock(wall, bounds)
        assert clock.now() > last
        clock.close()
        wall.pass_us(1000)
    assert unix_us(clock.last) == NOON + 19_000


def test_clock_that_is_closed_can_be_asked_on() -> None:
    wall, bounds = Hands(), MemoryBoundStore()
    clock = Clock(wall, bounds)
    clock.now()
    clock.close()
    again = clock.now()
    assert Clock(wall, bounds).now() > again


def test_disk_that_takes_no_bound_at_the_end_keeps_the_one_it_has() -> None:
    wall, bounds = Hands(), FullDisk()
    clock = Clock(wall, bounds)
    last = clock.now()
    bounds.full = True
    clock.close()
    assert clock.now() > last
    assert bounds.load() > clock.last


def test_wall_catches_up_with_starts_of_killed_processes() -> None:
    wall, bounds = Hands(), MemoryBoundStore()
    last = Clock(wall, bounds).now()
    for _ in range(3):  # each is killed
        clock = Clock(wall, bounds)
        first = clock.now()
        assert first > last
        last = first
    ahead_us = unix_us(last) - wall.now
    assert clock.ahead_us == pytest.approx(ahead_us, abs=1000)
    wall.pass_us(ahead_us)
    assert seconds_between(last, clock.now()) == pytest.approx(ahead_us / 2e6, abs=0.001)
    wall.pass_us(ahead_us)
    clock.now()
    assert refused_seconds(clock) == 0
    wall.pass_us(1_000_000)
    assert unix_us(clock.now()) == wall.now


def test_short_lives_do_not_add_up() -> None:
    """A process is killed a second after its start, at each start."""
    wall, bounds = Hands(), MemoryBoundStore()
    for _ in range(100):
        clock = Clock(wall, bounds)
        for _ in range(10):
            clock.now()
            if clock.bound_due:
                clock.extend()
            wall.pass_us(100_000)
        assert clock.ahead_us <= 1_000_000


def test_wall_that_jumps_past_while_it_catches_up_is_not_believed() -> None:
    wall, bounds = Hands(), MemoryBoundStore()
    Clock(wall, bounds).now()
    clock = Clock(wall, bounds)
    wall.now += HOUR_US
    first = clock.now()
    wall.pass_us(2_000_000)
    assert seconds_between(first, clock.now()) == pytest.approx(2.0, abs=0.001)
