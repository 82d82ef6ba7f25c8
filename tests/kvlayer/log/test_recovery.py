"""The log after crashes, and after bytes went bad."""

import asyncio
import errno
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tailrace.kvlayer.errors import StoreClosed
from tailrace.kvlayer.log import CommandLog, LogCorrupt
from tailrace.kvlayer.log.group import HEADER_BYTES
from tests.harness.sim_disk import Operation, SimDisk
from tests.harness.simulation import Simulation

SEGMENT_BYTES = 1024
FLUSH = -1
"""Among sizes of entries: the engine flushes, and the log is truncated."""


@dataclass
class History:
    """What was appended over all lives of a log, and what was acknowledged."""

    appended: dict[int, bytes] = field(default_factory=dict)
    acknowledged: int = 0
    flushed: int = 0

    def copy(self) -> "History":
        return History(dict(self.appended), self.acknowledged, self.flushed)

    def note_recovered(self, log: CommandLog) -> None:
        """Checks a recovery against the promises, and forgets what it cut."""
        recovered = dict(log.replay(self.flushed))
        last = max(recovered, default=self.flushed)
        assert last >= self.acknowledged, "an acknowledged entry is lost"
        kept = {i: p for i, p in self.appended.items() if i <= last}
        assert recovered == {i: p for i, p in kept.items() if i > self.flushed}, "no prefix"
        assert log.last_index == log.durable_index >= last
        self.appended = kept
        self.acknowledged = last


@dataclass
class Crash:
    """A disk as a crash left it, and what the world knew then."""

    disk: SimDisk
    history: History


async def open_log(sim: Simulation, disk: SimDisk, *, flushed_index: int = 0) -> CommandLog:
    return await CommandLog.open(
        disk,
        sim.offload,
        flushed_index=flushed_index,
        on_failure=lambda error: None,
        segment_bytes=SEGMENT_BYTES,
    )


async def live(sim: Simulation, disk: SimDisk, history: History, sizes: list[int]) -> None:
    """One life: recover, check, append groups of growing entries, truncate now and then, close."""
    log = await open_log(sim, disk, flushed_index=history.flushed)
    history.note_recovered(log)
    for size in sizes:
        if size == FLUSH:
            history.flushed = log.durable_index
            await log.truncate(history.flushed)
            continue
        for part in range(1 + size % 3):
            payload = bytes((sim.random.randrange(256),)) * (size + part)
            history.appended[log.append(payload)] = payload
        await log.wait_durable(log.last_index)
        history.acknowledged = log.last_index
    await log.close()


def crashes_at_every_byte(sim: Simulation, sizes: list[int]) -> Iterator[Crash]:
    """Runs a life and crashes it at each byte of each write, before the sync of that write."""
    history, crashes = History(), []

    def crash_here() -> None:
        for cut_at in range(sim.disk.unsynced_bytes + 1):
            crashes.append(Crash(sim.disk.crash(cut_at=cut_at), history.copy()))

    sim.disk.before_sync = crash_here
    sim.run(live(sim, sim.disk, history, sizes))
    yield from crashes


def test_crash_at_every_byte_loses_nothing_acknowledged() -> None:
    sim = Simulation(1)
    crashes = list(crashes_at_every_byte(sim, [1, 30, 2, 400, 50, 7, 300, 5]))
    assert len(crashes) > 1200
    for crash in crashes:
        # The second life writes over the cut tail, the third must not see what was there.
        sim.run(live(sim, crash.disk, crash.history, [3, 20]))
        sim.run(live(sim, crash.disk, crash.history, []))


def test_crash_in_recovery_at_every_byte() -> None:
    sim = Simulation(2)
    for crash in list(crashes_at_every_byte(sim, [200, 30]))[::17]:
        again: list[Crash] = []

        def crash_here(crash: Crash = crash, again: list[Crash] = again) -> None:
            for cut_at in range(0, crash.disk.unsynced_bytes + 1, 5):
                again.append(Crash(crash.disk.crash(cut_at=cut_at), crash.history.copy()))

        crash.disk.before_sync = crash_here
        sim.run(live(sim, crash.disk, crash.history.copy(), []))
        for second in again:
            sim.run(live(sim, second.disk, second.history, [9]))


def crash_once(sim: Simulation, disk: SimDisk, history: History, sizes: list[int]) -> Crash:
    """Runs a life on `disk` and crashes it at a moment, and in a way, that the seed chooses."""
    syncs = sim.random.randrange(20)
    found: list[Crash] = []

    def crash_here() -> None:
        if disk.sync_count >= syncs and not found:
            power_lost = sim.random.random() < 0.5
            found.append(Crash(disk.crash() if power_lost else disk.killed(), history.copy()))

    disk.before_sync = crash_here
    sim.run(live(sim, disk, history, sizes))
    return found[0] if found else Crash(disk.crash(), history)


@pytest.mark.parametrize("seed", range(100))
def test_many_lives_with_pages_lost_in_any_order(seed: int) -> None:
    sim = Simulation(seed)
    disk, history = sim.disk, History()
    for _ in range(8):
        sizes = [sim.random.choice((FLUSH, 1, 40, 300, 600, 6000)) for _ in range(15)]
        crash = crash_once(sim, disk, history, sizes)
        disk, history = crash.disk, crash.history


def test_recovered_entries_survive_the_next_power_loss() -> None:
    """A killed process leaves a group in the page cache; recovery must not trust it as it is."""

    async def scenario(sim: Simulation, *, sync_fails: bool) -> SimDisk:
        log = await open_log(sim, sim.disk)
        if sync_fails:
            sim.disk.fail(Operation.SYNC, OSError(errno.EIO, "bad sector"))
        killed: list[SimDisk] = []
        sim.disk.before_sync = lambda: killed.append(sim.disk.killed())
        log.append(b"in the page cache")
        try:
            await log.wait_durable(1)
        except StoreClosed:
            killed = [sim.disk.killed()]
        await log.close()
        return killed[0]

    for seed in range(20):
        for sync_fails in (False, True):
            sim = Simulation(seed)
            disk = sim.run(scenario(sim, sync_fails=sync_fails))
            log = sim.run(open_log(sim, disk))
            assert list(log.replay(0)) == [(1, b"in the page cache")]
            log = sim.run(open_log(sim, disk.crash()))
            assert list(log.replay(0)) == [(1, b"in the page cache")]


def test_log_that_was_just_made_survives_its_makers_death() -> None:
    """Killed before the folder was synced: the next process must not build on a name in cache."""
    sim = Simulation(12)
    killed: list[SimDisk] = []
    sim.disk.before_sync = lambda: killed.append(sim.disk.killed())
    sim.run(open_log(sim, sim.disk))
    assert len(killed) == 2
    for disk in [disk.killed() for disk in killed for _ in range(8)]:
        history = History()
        sim.run(live(sim, disk, history, [5]))
        sim.run(live(sim, disk.crash(), history, [5]))


def test_short_first_segment_gets_its_space() -> None:
    sim = Simulation(13)
    sim.disk.create("0000000000000001.log", 100)
    sim.run(live(sim, sim.disk, History(), [5]))
    assert len(sim.disk.read("0000000000000001.log")) == SEGMENT_BYTES


def test_crash_while_unused_segments_are_removed() -> None:
    """However far removal came, what is left has no hole."""
    sim = Simulation(14)
    history = written_log(sim)
    last = int(sim.disk.names()[-1].removesuffix(".log"))
    for extra in (1, 2, 3):
        sim.disk.create(f"{last + extra:016d}.log", SEGMENT_BYTES)
    sim.disk.sync_folder()
    left: list[SimDisk] = []
    sim.disk.before_sync = lambda: left.append(sim.disk.crash())
    sim.run(live(sim, sim.disk, history, []))
    for disk in left:
        sim.run(live(sim, disk, history.copy(), []))


def test_truncation_keeps_the_last_entry_until_another_is_durable() -> None:
    """An empty active segment alone would not say where the log stands."""

    async def scenario(sim: Simulation) -> SimDisk:
        log = await open_log(sim, sim.disk)
        log.append(bytes(SEGMENT_BYTES - 100))
        await log.wait_durable(1)
        log._flush_lane.hold()  # type: ignore[attr-defined]
        log.append(bytes(200))  # rolls, and hangs
        await asyncio.sleep(1)
        assert len(sim.disk.names()) == 2
        await log.truncate(1)
        return sim.disk.crash()

    sim = Simulation(15)
    disk = sim.run(scenario(sim))
    log = sim.run(open_log(sim, disk, flushed_index=1))
    assert log.last_index == 1


def test_cut_tail_is_gone_for_good() -> None:
    sim = Simulation(11)
    for crash in list(crashes_at_every_byte(sim, [200, 30])):
        sim.run(open_log(sim, crash.disk))
        assert sim.run(open_log(sim, crash.disk)).notice is None


def written_log(sim: Simulation, entry_count: int = 12) -> History:
    history = History()
    sim.run(live(sim, sim.disk, history, [60] * entry_count))
    return history


def test_bad_byte_below_durable_is_corruption() -> None:
    sim = Simulation(3)
    written_log(sim)
    first, last = sim.disk.names()[0], sim.disk.names()[-2]
    for name, end in ((first, SEGMENT_BYTES * 3 // 4), (last, 1)):
        for offset in range(0, end, 13):
            sim.disk.corrupt(name, offset)
            before = sim.disk.read(name)
            with pytest.raises(LogCorrupt) as caught:
                sim.run(open_log(sim, sim.disk))
            assert caught.value.segment == name
            assert caught.value.offset <= offset
            assert name in str(caught.value)
            assert sim.disk.read(name) == before, "an error changes nothing"
            sim.disk.corrupt(name, offset)  # and back


def test_zeroed_group_below_durable_is_corruption() -> None:
    sim = Simulation(4)
    sim.run(live(sim, sim.disk, History(), [0, 0, 0, 0]))
    name = sim.disk.names()[0]
    group_bytes = HEADER_BYTES + 4
    content = sim.disk.read(name)
    for offset in range(group_bytes, 2 * group_bytes):
        sim.disk.corrupt(name, offset, flip=content[offset])
    with pytest.raises(LogCorrupt, match=f"{name} is corrupt at offset {group_bytes}"):
        sim.run(open_log(sim, sim.disk))


def test_missing_segment_is_corruption() -> None:
    sim = Simulation(5)
    written_log(sim, 30)
    names = sim.disk.names()
    sim.disk.remove(names[1])
    with pytest.raises(LogCorrupt, match=f"{names[1]} is corrupt at offset 0: the file is missing"):
        sim.run(open_log(sim, sim.disk))


def test_log_that_begins_above_the_engine_is_corruption() -> None:
    sim = Simulation(6)
    written_log(sim, 30)
    sim.disk.remove(sim.disk.names()[0])
    with pytest.raises(LogCorrupt, match="the engine holds only 0"):
        sim.run(open_log(sim, sim.disk))


def test_segment_that_is_cut_off_within_a_group_is_corruption() -> None:
    """A copy that was broken off: what it lacks may have been acknowledged."""
    sim = Simulation(20)
    sim.run(live(sim, sim.disk, History(), [100, 100]))
    name, *others = sim.disk.names()
    for other in others:
        sim.disk.remove(other)
    content = sim.disk.read(name)[:150]
    sim.disk.remove(name)
    file = sim.disk.create(name, len(content))
    file.pwrite(content, 0)
    with pytest.raises(LogCorrupt, match=f"ends within a group: it has 150 of {SEGMENT_BYTES}"):
        sim.run(open_log(sim, sim.disk))
    assert sim.disk.read(name) == content


def test_removed_log_is_corruption() -> None:
    sim = Simulation(7)
    with pytest.raises(LogCorrupt, match="no segment is left, but the engine holds entry 5"):
        sim.run(open_log(sim, sim.disk, flushed_index=5))


def test_cut_is_said_in_a_sentence() -> None:
    sim = Simulation(8)
    crashes = list(crashes_at_every_byte(sim, [10, 10]))
    notices = [sim.run(open_log(sim, crash.disk)).notice for crash in crashes]
    assert notices[-1] is None, "a whole group is no torn tail"
    torn = notices[-2]
    assert torn is not None
    assert "never acknowledged" in torn
    assert "0000000000000001.log" in torn
    assert "the log ends with entry 3" in torn


def test_indexes_start_above_an_engine_that_is_ahead() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim, sim.disk, flushed_index=50)
        assert (log.last_index, log.durable_index) == (50, 50)
        assert log.notice is not None
        assert "entry 50, ahead of the log's" in log.notice
        assert list(log.replay(50)) == []
        assert log.append(b"above") == 51
        await log.wait_durable(51)
        await log.close()

    async def reopened(sim: Simulation) -> list[tuple[int, bytes]]:
        log = await open_log(sim, sim.disk, flushed_index=50)
        assert log.notice is None
        await log.close()
        return list(log.replay(50))

    sim = Simulation(9)
    written_log(sim, 3)
    sim.run(scenario(sim))
    assert sim.run(reopened(sim)) == [(51, b"above")]


def test_copied_log_bytes_in_a_value_are_not_taken_for_groups() -> None:
    """A value may hold a group of this very segment; torn, it must not prove corruption."""

    async def scenario(sim: Simulation) -> SimDisk:
        log = await open_log(sim, sim.disk)
        log.append(b"original")
        await log.wait_durable(1)
        copied = sim.disk.read(sim.disk.names()[0], 0, HEADER_BYTES + 12)
        log.append(b"x" * 40 + copied + b"x" * 40)
        images: list[SimDisk] = []
        sim.disk.before_sync = lambda: images.append(sim.disk.crash(cut_at=160))
        await log.wait_durable(2)
        await log.close()
        return images[0]

    sim = Simulation(10)
    disk = sim.run(scenario(sim))
    log = sim.run(open_log(sim, disk))
    assert list(log.replay(0)) == [(1, b"original")]
