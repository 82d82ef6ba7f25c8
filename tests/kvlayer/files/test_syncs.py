"""Syncs beside the loop: the kernel's, and those of a lane's thread, keep one set of promises."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.kvlayer.files import syncs
from tailrace.kvlayer.files.disk import MemoryDisk, RealDisk
from tailrace.kvlayer.files.syncs import KernelSyncs, LaneSyncs, Syncable, Syncs
from tailrace.kvlayer.log import CommandLog
from tailrace.kvlayer.process.offload import OffloadLane, ThreadOffload

Made = Callable[[OffloadLane], Syncs]
both = pytest.mark.parametrize("made", [KernelSyncs, LaneSyncs])


@asynccontextmanager
async def opened(made: Made) -> AsyncIterator[Syncs]:
    offload = ThreadOffload()
    try:
        syncs = made(offload)
    except OSError as error:
        pytest.skip(f"the kernel does not sync beside a process: {error}")
    try:
        yield syncs
    finally:
        syncs.close()
        offload.close()


async def synced(syncs: Syncs, file: Syncable) -> BaseException | None:
    told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    syncs.start(file, told.set_result)
    assert not told.done(), "told in the step that asked"
    return await told


@both
def test_each_sync_is_told_of_once(made: Made, tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", 4096)
        async with opened(made) as syncs:
            for number in range(50):
                file.pwrite(b"x", number)
                assert await synced(syncs, file) is None
        file.close()

    asyncio.run(scenario())


@both
def test_a_sync_that_fails_says_why(made: Made) -> None:
    async def scenario() -> None:
        reader, writer = os.pipe()  # which no system syncs
        async with opened(made) as syncs:
            error = await synced(syncs, Pipe(writer))
            assert isinstance(error, OSError)
            assert error.errno == errno.EINVAL
        os.close(reader)
        os.close(writer)

    asyncio.run(scenario())


@both
def test_files_in_memory_are_synced_too(made: Made) -> None:
    async def scenario() -> None:
        file = MemoryDisk().create("a", 1)
        async with opened(made) as syncs:
            assert await synced(syncs, file) is None

    asyncio.run(scenario())


def test_syncs_that_were_closed_leave_room_for_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", 4096)
        for _ in range(20):
            async with opened(KernelSyncs) as syncs:
                assert await synced(syncs, file) is None
        file.close()

    before = int(Path("/proc/sys/fs/aio-nr").read_text())
    asyncio.run(scenario())
    assert int(Path("/proc/sys/fs/aio-nr").read_text()) < before + 20 * 20


def test_a_sync_under_way_is_left_to_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", 4096)
        for _ in range(5):
            async with opened(KernelSyncs) as syncs:
                file.pwrite(b"x", 0)
                syncs.start(file, lambda error: pytest.fail("told after its end"))
            async with opened(KernelSyncs) as syncs:
                assert await synced(syncs, file) is None
        file.close()

    asyncio.run(scenario())


class Pipe:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def fdatasync(self) -> None:
        os.fdatasync(self.descriptor)


def test_a_sync_that_was_put_off_finds_its_writing_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk works while the step goes on."""
    begun: list[bytes] = []

    def begin(descriptor: int, offset: int, size: int, flags: int) -> int:
        begun.append(os.pread(descriptor, size, offset))
        return 0

    monkeypatch.setattr(syncs, "_sync_file_range", begin)

    async def scenario() -> None:
        offload = ThreadOffload()
        disk = RealDisk(tmp_path / "log")
        log = await CommandLog.open(disk, offload, flushed_index=0, on_failure=print)
        log.append(b"beside the loop")
        await log.wait_durable(1)
        log.alone = True
        log.append(b"in the step")
        assert [b"in the step" in written for written in begun] == [True]
        log.settle(2, lambda refusal: None)
        assert log.durable_index == 2
        await log.close()
        offload.close()

    asyncio.run(scenario())


def test_writing_that_was_begun_is_written(tmp_path: Path) -> None:
    file = RealDisk(tmp_path / "log").create("a", 4096)
    file.pwrite(b"xyz", 5)
    syncs.begin_writing(file, 5, 3)
    file.fdatasync()
    file.close()
    assert (tmp_path / "log" / "a").read_bytes()[5:8] == b"xyz"
