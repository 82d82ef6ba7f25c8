"""The log while it runs."""

import asyncio
import errno
import os
from functools import partial

import pytest

from tailrace.kvlayer.errors import StoreClosed, StoreFull, TakesWaiting
from tailrace.kvlayer.log import CommandLog, LogTruncated
from tailrace.kvlayer.log.command_log import (
    LINGER_BYTES_MAX,
    LINGER_SECONDS,
    STEP_SYNC_SECONDS,
    TOLD_MAX,
)
from tailrace.kvlayer.txn.immediate import finished
from tests.harness.sim_disk import Operation
from tests.harness.simulation import Simulation

SEGMENT_BYTES = 4096


async def open_log(sim: Simulation, *, flushed_index: int = 0) -> CommandLog:
    return await CommandLog.open(
        sim.disk,
        sim.offload,
        flushed_index=flushed_index,
        on_failure=lambda error: None,
        segment_bytes=SEGMENT_BYTES,
    )


async def append_durably(log: CommandLog, *payloads: bytes) -> None:
    for payload in payloads:
        log.append(payload)
    await log.wait_durable(log.last_index)


def test_entries_read_back_in_order() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        await append_durably(log, b"one", b"", b"three")
        await append_durably(log, b"four")
        assert list(log.read(2, 4)) == [(2, b""), (3, b"three"), (4, b"four")]
        await log.close()

    sim = Simulation(1)
    sim.run(scenario(sim))


def test_appends_during_a_sync_share_the_next() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        before = sim.disk.sync_count
        log.append(b"first")
        await asyncio.sleep(1e-6)  # the flusher takes it
        for _ in range(50):
            log.append(b"gathered")
        await log.wait_durable(51)
        assert sim.disk.sync_count - before == 2
        await log.close()

    sim = Simulation(2)
    sim.run(scenario(sim))


def test_entries_that_nobody_waits_for_linger() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        before = sim.disk.sync_count
        for _ in range(3):
            log.append(b"provisional", urgent=False)
            await asyncio.sleep(LINGER_SECONDS / 10)
        assert log.durable_index == 0
        log.append(b"urgent")
        await log.wait_durable(4)
        assert sim.disk.sync_count - before == 1
        await log.close()

    sim = Simulation(6)
    sim.run(scenario(sim))


def test_no_entry_lingers_for_long() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        for last in (1, 2):
            log.append(b"provisional", urgent=False)
            await asyncio.sleep(1)
            assert log.durable_index == last
        await log.close()

    sim = Simulation(7)
    sim.run(scenario(sim))


def test_a_load_does_not_linger() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        payload = bytes(SEGMENT_BYTES // 2)
        count = LINGER_BYTES_MAX // len(payload) + 1
        for _ in range(count):
            log.append(payload, urgent=False)
        began = asyncio.get_running_loop().time()
        while not log.durable_index:
            await asyncio.sleep(LINGER_SECONDS / 100)
        assert asyncio.get_running_loop().time() - began < LINGER_SECONDS
        await log.close()
        assert log.durable_index == count

    sim = Simulation(9)
    sim.run(scenario(sim))


def test_a_waiter_takes_along_what_lingers() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        began = asyncio.get_running_loop().time()
        log.append(b"provisional", urgent=False)
        await log.wait_durable(1)
        assert asyncio.get_running_loop().time() - began < LINGER_SECONDS
        log.append(b"provisional", urgent=False)
        await log.close()
        assert log.durable_index == 2

    sim = Simulation(8)
    sim.run(scenario(sim))


def test_a_waiter_for_what_is_on_its_way_begins_nothing() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.append(b"urgent")
        log.append(b"provisional", urgent=False)
        await log.wait_durable(1)
        log.append(b"urgent")  # takes along what lingers
        await log.wait_durable(2)
        before = sim.disk.sync_count
        await log.wait_durable(3)
        assert sim.disk.sync_count == before
        await log.close()

    sim = Simulation(10)
    sim.run(scenario(sim))


def test_one_who_fails_at_hearing_keeps_nobody_waiting() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        failures: list[dict[str, object]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        log.append(b"x")
        log.when_durable(1, lambda refusal: 1 // 0)  # type: ignore[arg-type]
        await log.wait_durable(1)
        assert [type(failure["exception"]) for failure in failures] == [ZeroDivisionError]
        await log.close()

    sim = Simulation(11)
    sim.run(scenario(sim))


def test_who_is_told_may_append() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.append(b"x")

        def more(refusal: StoreClosed | None) -> None:
            log.append(b"y")
            log.append(b"z")

        log.when_durable(1, more)
        await log.wait_durable(1)
        await log.wait_durable(3)
        assert [payload for _, payload in log.read(1, 3)] == [b"x", b"y", b"z"]
        await log.close()

    sim = Simulation(12)
    sim.run(scenario(sim))


def test_one_who_was_left_at_the_wait_hears_of_no_failure() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log._flush_lane.hold()  # type: ignore[attr-defined]
        log.append(b"x")
        with pytest.raises(TakesWaiting):
            finished(log.wait_durable(1))

    sim = Simulation(14)
    sim.run(scenario(sim))  # which fails for an error that nobody has asked for


def test_so_many_are_told_in_a_step() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.append(b"x")
        told: list[int] = []
        told_before: list[int] = []

        def tell(number: int, refusal: StoreClosed | None) -> None:
            if not told:  # in the next step, before more are told
                asyncio.get_running_loop().call_soon(lambda: told_before.append(len(told)))
            told.append(number)

        for number in range(3 * TOLD_MAX):
            log.when_durable(1, partial(tell, number))
        await log.wait_durable(1)
        assert told_before == [TOLD_MAX]
        assert told == list(range(3 * TOLD_MAX))
        await log.close()

    sim = Simulation(13)
    sim.run(scenario(sim))


def test_a_lone_clients_sync_is_carried_out_in_its_step() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.alone = True
        log.append(b"x")
        assert log.durable_index == 0, "the step has more to do"
        told: list[StoreClosed | None] = []
        heard: list[tuple[int, int]] = []
        log.on_durable(lambda index: heard.append((index, len(told))))
        log.settle(1, told.append)
        assert told == [None]
        assert heard == [(1, 1)], "listeners hear of it in the same step, behind who waits"
        await log.close()

    sim = Simulation(15)
    sim.run(scenario(sim))


def test_who_waits_has_a_sync_that_was_put_off_beside_the_loop() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.alone = True
        log.append(b"x")
        told: list[StoreClosed | None] = []
        log.when_durable(1, told.append)
        assert not told
        await log.wait_durable(1)
        assert told == [None]
        log.append(b"nobody waits")
        while log.durable_index < 2:
            await asyncio.sleep(LINGER_SECONDS)
        await log.close()

    sim = Simulation(16)
    sim.run(scenario(sim))


def test_a_sync_that_fails_in_a_step_ends_the_log() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.alone = True
        log.append(b"x")
        sim.disk.fail(Operation.SYNC, OSError(errno.EIO, os.strerror(errno.EIO)))
        told: list[StoreClosed | None] = []
        log.settle(1, told.append)
        assert not told, "the flusher ends the log, and tells"
        with pytest.raises(StoreClosed, match="the log has failed"):
            await log.wait_durable(1)
        assert isinstance(told[0], StoreClosed)
        assert log.durable_index == 0
        await log.close()

    sim = Simulation(17)
    sim.run(scenario(sim))


def test_a_slow_disk_holds_up_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.alone = True
        loop, passed = asyncio.get_running_loop(), [0.0]
        now = loop.time

        def slow() -> None:
            passed[0] += 3.5 * STEP_SYNC_SECONDS

        sim.disk.before_sync = slow
        monkeypatch.setattr(loop, "time", lambda: now() + passed[0])
        in_step: list[bool] = []
        for index in range(1, 10):
            log.append(b"x")
            told: list[StoreClosed | None] = []
            log.settle(index, told.append)
            in_step.append(bool(told))
            await log.wait_durable(index)
        assert in_step == [True, False, False, False] * 2 + [True]
        await log.close()

    sim = Simulation(18)
    sim.run(scenario(sim))


def test_nothing_is_durable_while_the_disk_hangs() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log._flush_lane.hold()  # type: ignore[attr-defined]
        log.append(b"x")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await log.wait_durable(1)
        assert log.durable_index == 0
        assert list(log.read(1, 1)) == []
        log._flush_lane.release()  # type: ignore[attr-defined]
        await log.wait_durable(1)
        await log.close()

    sim = Simulation(3)
    sim.run(scenario(sim))


def test_listeners_hear_before_waiters_run() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        heard: list[int] = []
        log.on_durable(heard.append)
        for index in range(1, 20):
            log.append(b"x" * index)
            if index % 3 == 0:
                await log.wait_durable(index)
                assert heard[-1] >= index
        await log.close()
        assert heard == sorted(set(heard))
        assert heard[-1] == 19

    sim = Simulation(4)
    sim.run(scenario(sim))


def test_failed_sync_ends_the_log() -> None:
    async def scenario(sim: Simulation) -> list[BaseException]:
        failures: list[BaseException] = []
        log = await CommandLog.open(
            sim.disk, sim.offload, flushed_index=0, on_failure=failures.append
        )
        await append_durably(log, b"kept")
        syncs = sim.disk.sync_count
        sim.disk.fail(Operation.SYNC, OSError(errno.EIO, "bad sector"))
        log.append(b"lost")
        waiters = [asyncio.create_task(log.wait_durable(2)) for _ in range(3)]
        outcomes = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StoreClosed] * 3
        with pytest.raises(StoreClosed, match="bad sector"):
            log.append(b"more")
        with pytest.raises(StoreClosed, match="bad sector"):
            await log.wait_durable(2)
        await log.wait_durable(1)
        await log.close()
        assert sim.disk.sync_count == syncs, "a failed sync was tried again"
        assert log.durable_index == 1
        return failures

    sim = Simulation(5)
    assert [str(error) for error in sim.run(scenario(sim))] == ["[Errno 5] bad sector"]


def test_failed_write_ends_the_log() -> None:
    async def scenario(sim: Simulation) -> list[BaseException]:
        failures: list[BaseException] = []
        log = await CommandLog.open(
            sim.disk, sim.offload, flushed_index=0, on_failure=failures.append
        )
        sim.disk.fail(Operation.WRITE, OSError(errno.EIO, "bad sector"))
        log.append(b"lost")
        with pytest.raises(StoreClosed):
            await log.wait_durable(1)
        await log.close()
        return failures

    sim = Simulation(6)
    assert len(sim.run(scenario(sim))) == 1


def test_full_disk_refuses_writes_until_there_is_room() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        sim.disk.space_left = 0
        written = 0
        with pytest.raises(StoreFull, match="No space left"):
            while True:
                await append_durably(log, bytes(200))
                written += 1
        assert written > SEGMENT_BYTES // 200 // 2
        assert log.durable_index == written
        assert len(list(log.read(1, written))) == written
        sim.disk.space_left = 10 * SEGMENT_BYTES
        await asyncio.sleep(1)
        await append_durably(log, bytes(200))
        assert log.durable_index == written + 1
        await log.close()

    sim = Simulation(7)
    sim.run(scenario(sim))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_no_descriptors_refuse_writes_until_there_are_some(number: int) -> None:
    """Segments are made and removed again as soon as there is a descriptor for it."""

    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        for operation in (Operation.CREATE, Operation.SYNC_FOLDER):
            sim.disk.fail(operation, OSError(number, os.strerror(number)))
            first = log.durable_index
            while log.durable_index < first + 3 * SEGMENT_BYTES // 200:
                try:
                    await append_durably(log, bytes(200))
                except StoreFull:
                    await asyncio.sleep(1)
        sim.disk.fail(Operation.SYNC_FOLDER, OSError(number, os.strerror(number)))
        await log.truncate(log.durable_index)
        assert log.first_retained_index > 1
        await log.close()

    sim = Simulation(7)
    sim.run(scenario(sim))


def test_entries_taken_before_the_disk_was_full_wait_for_room() -> None:
    told: list[OSError | None] = []

    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        log.on_room(told.append)
        sim.disk.space_left = 0
        for _ in range(60):
            log.append(bytes(200))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await log.wait_durable(60)
        with pytest.raises(StoreFull):
            log.append(b"x")
        sim.disk.space_left = 10 * SEGMENT_BYTES * 4
        await log.wait_durable(60)
        await log.close()

    sim = Simulation(8)
    sim.run(scenario(sim))
    full, room = told
    assert isinstance(full, OSError) and room is None


def test_entry_larger_than_a_segment_waits_for_room() -> None:
    """Its space is taken before it is written: to run out in the write would end the log."""

    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        sim.disk.space_left = SEGMENT_BYTES
        log.append(bytes(3 * SEGMENT_BYTES))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await log.wait_durable(1)
        sim.disk.space_left = None
        await log.wait_durable(1)
        await append_durably(log, b"and the next")
        assert [len(entry) for _, entry in log.read(1, 2)] == [3 * SEGMENT_BYTES, 12]
        await log.close()

    sim = Simulation(9)
    sim.run(scenario(sim))


def test_close_does_not_wait_for_room() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        sim.disk.space_left = 0
        for _ in range(60):
            log.append(bytes(200))
        waiter = asyncio.create_task(log.wait_durable(60))
        await asyncio.sleep(1)
        await log.close()
        with pytest.raises(StoreClosed):
            await waiter

    sim = Simulation(15)
    sim.run(scenario(sim))


def test_broken_disk_found_while_preparing_ends_the_log() -> None:
    async def scenario(sim: Simulation) -> list[BaseException]:
        failures: list[BaseException] = []
        log = await CommandLog.open(
            sim.disk,
            sim.offload,
            flushed_index=0,
            on_failure=failures.append,
            segment_bytes=SEGMENT_BYTES,
        )
        sim.disk.fail(Operation.CREATE, OSError(errno.EROFS, "read-only file system"))
        await append_durably(log, bytes(SEGMENT_BYTES * 3 // 4))
        await asyncio.sleep(1)
        with pytest.raises(StoreClosed, match="read-only"):
            log.append(b"x")
        await log.close()
        return failures

    sim = Simulation(9)
    assert len(sim.run(scenario(sim))) == 1


def test_segments_roll_and_truncate() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        for number in range(100):
            await append_durably(log, number.to_bytes(2, "big") * 100)
        rolled = sim.disk.names()
        assert len(rolled) > 5
        await log.truncate(60)
        assert len(sim.disk.names()) < len(rolled)
        kept = log.first_retained_index
        assert 1 < kept <= 61
        assert [index for index, _ in log.read(kept, 100)] == list(range(kept, 101))
        with pytest.raises(LogTruncated):
            log.read(kept - 1, 100)
        await log.truncate(100)
        assert log.first_retained_index <= 100, "the segment with the last entry stays"
        await log.close()
        log = await open_log(sim, flushed_index=100)
        assert log.last_index == 100
        await append_durably(log, b"next")
        assert list(log.read(101, 101)) == [(101, b"next")]
        await log.close()

    sim = Simulation(10)
    sim.run(scenario(sim))


def test_entry_larger_than_a_segment_has_its_own() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        large = bytes(range(256)) * 40
        await append_durably(log, b"small")
        await append_durably(log, large)
        await append_durably(log, b"small")
        assert [payload for _, payload in log.read(1, 3)] == [b"small", large, b"small"]
        await log.close()
        log = await open_log(sim)
        assert [payload for _, payload in log.replay(0)] == [b"small", large, b"small"]
        await log.close()

    sim = Simulation(11)
    sim.run(scenario(sim))


def test_close_writes_what_is_buffered() -> None:
    async def scenario(sim: Simulation) -> None:
        log = await open_log(sim)
        for number in range(30):
            log.append(bytes(number * 20))
        await log.close()
        await log.close()
        assert log.durable_index == 30
        with pytest.raises(StoreClosed, match="the store is closed"):
            log.append(b"late")
        log = await open_log(sim)
        assert log.last_index == 30
        assert log.notice is None
        await log.close()

    sim = Simulation(12)
    sim.run(scenario(sim))


def test_same_seed_gives_the_same_history() -> None:
    async def writer(sim: Simulation, log: CommandLog, name: str, history: list[object]) -> None:
        for number in range(20):
            index = log.append(f"{name}{number}".encode())
            await log.wait_durable(index)
            history.append((sim.now, name, index))

    async def scenario(sim: Simulation) -> list[object]:
        log = await open_log(sim)
        history: list[object] = []
        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(writer(sim, log, name, history))
        await log.close()
        return history

    def run(seed: int) -> list[object]:
        sim = Simulation(seed)
        return sim.run(scenario(sim))

    assert run(13) == run(13)
    assert run(13) != run(14)
