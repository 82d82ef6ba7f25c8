"""Durable writes: the kernel's, and those of a lane's thread, keep one set of promises."""

import asyncio
import errno
import os
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from tailrace.kvlayer.files import syncs as syncs_module
from tailrace.kvlayer.files.disk import MemoryDisk, RealDisk
from tailrace.kvlayer.files.syncs import (
    BLOCK_BYTES,
    DIRECT_BYTES_MAX,
    KernelSyncs,
    LaneSyncs,
    Syncable,
    Syncs,
)
from tailrace.kvlayer.process.offload import OffloadLane, ThreadOffload

Made = Callable[[OffloadLane], Syncs]
both = pytest.mark.parametrize("made", [KernelSyncs, LaneSyncs])


@asynccontextmanager
async def opened(made: Made) -> AsyncIterator[Syncs]:
    offload = ThreadOffload()
    try:
        syncs = made(offload)
    except OSError as error:
        pytest.skip(f"the kernel does not write beside a process: {error}")
    try:
        yield syncs
    finally:
        syncs.close()
        offload.close()


async def written(
    syncs: Syncs, file: Syncable, data: bytes, offset: int, *, put_off: bool = False
) -> BaseException | None:
    told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    syncs.write(file, data, offset, told.set_result, put_off=put_off)
    assert not told.done(), "told in the call that asked"
    return await told


@both
def test_a_file_that_is_written_from_its_beginning_holds_what_was_written(
    made: Made, tmp_path: Path
) -> None:
    """Writes of any length, at any offset, some waited for in their step, some hastened, some of
    them of another way; and what the file's reader sees in between."""
    random, disk = Random(7), RealDisk(tmp_path / "log")

    async def scenario() -> None:
        file = disk.create("a", 1 << 20)
        wanted = bytearray()
        async with opened(made) as syncs:
            while len(wanted) < 600_000:
                length = random.choice(
                    (1, 300, BLOCK_BYTES - 1, BLOCK_BYTES, random.randrange(9000))
                )
                data, offset = random.randbytes(length + 1), len(wanted)
                wanted += data
                match random.randrange(4):
                    case 0:
                        assert await written(syncs, file, data, offset) is None
                    case 1:
                        assert await written(syncs, file, data, offset, put_off=True) is None
                    case 2:
                        told: list[BaseException | None] = []
                        syncs.write(file, data, offset, told.append, put_off=True)
                        assert not told
                        syncs.finish()
                        assert told == [None]
                    case _:
                        file.pwrite(data, offset)
                        file.fdatasync()
                assert disk.read("a", offset, len(data)) == data
        file.close()
        content = disk.read("a")
        assert content[: len(wanted)] == wanted
        assert not any(content[len(wanted) :])
        assert len(content) == 1 << 20

    asyncio.run(scenario())


@both
def test_a_write_that_was_put_off_can_be_hastened(made: Made, tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", 4096)
        told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        async with opened(made) as syncs:
            syncs.write(file, b"x", 0, told.set_result, put_off=True)
            syncs.hasten()
            assert not told.done()
            assert await told is None
            syncs.hasten()
            syncs.finish()  # nothing is under way
        file.close()

    asyncio.run(scenario())


@both
@pytest.mark.parametrize("in_step", [True, False])
def test_a_write_that_fails_says_why(made: Made, in_step: bool, tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "a"
        path.write_bytes(bytes(4096))
        file = ReadOnly(os.open(path, os.O_RDONLY))
        told: list[BaseException | None] = []
        async with opened(made) as syncs:
            try:
                syncs.write(file, b"x", 0, told.append, put_off=in_step)
                if in_step:
                    syncs.finish()
                while not told:
                    await asyncio.sleep(0)
            except OSError as error:
                assert not told, "told of what has failed already"
                told.append(error)
        assert isinstance(told[0], OSError)
        assert told[0].errno == errno.EBADF
        os.close(file.descriptor)

    asyncio.run(scenario())


@both
def test_a_write_that_ends_at_a_limit_says_which(made: Made, tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", BLOCK_BYTES)
        told: list[BaseException | None] = []
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        async with opened(made) as syncs:
            resource.setrlimit(resource.RLIMIT_FSIZE, (BLOCK_BYTES, hard))
            try:
                syncs.write(file, bytes(BLOCK_BYTES + 1), 0, told.append)
                while not told:
                    await asyncio.sleep(0)
            except OSError as error:
                told.append(error)
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert isinstance(told[0], OSError)
        assert told[0].errno == errno.EFBIG
        file.close()

    asyncio.run(scenario())


@both
def test_files_in_memory_are_written_too(made: Made) -> None:
    async def scenario() -> None:
        disk = MemoryDisk()
        file = disk.create("a", 3)
        async with opened(made) as syncs:
            assert await written(syncs, file, b"xy", 1) is None
        assert disk.read("a") == b"\x00xy"

    asyncio.run(scenario())


class NoThread:
    """A lane that must not be asked."""

    def run(self, work: object) -> "asyncio.Future[None]":
        pytest.fail("a thread was asked")

    def close(self) -> None: ...


def test_the_kernel_writes_without_a_thread(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = RealDisk(tmp_path / "log")
        file = disk.create("a", 4096)
        try:
            os.close(os.open(tmp_path / "log" / "a", os.O_RDWR | os.O_DIRECT))
        except OSError as error:
            pytest.skip(f"the file system knows its cache alone: {error}")
        async with opened(lambda _: KernelSyncs(NoThread())) as syncs:  # type: ignore[arg-type]
            assert await written(syncs, file, b"abc", 0) is None
            assert await written(syncs, file, b"xyz", 3, put_off=True) is None
        assert disk.read("a", 0, 6) == b"abcxyz"
        file.close()

    asyncio.run(scenario())


def test_what_is_long_goes_by_the_systems_cache(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk, data = RealDisk(tmp_path / "log"), os.urandom(DIRECT_BYTES_MAX)
        file = disk.create("a", 2 * DIRECT_BYTES_MAX)
        async with opened(KernelSyncs) as syncs:
            assert await written(syncs, file, b"abc", 0) is None
            assert await written(syncs, file, data, 3) is None
            assert await written(syncs, file, b"xyz", 3 + len(data)) is None
        assert disk.read("a", 0, 6 + len(data)) == b"abc" + data + b"xyz"
        file.close()

    asyncio.run(scenario())


def test_a_file_system_that_knows_its_cache_alone_is_written_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses a block of this length when it comes to it, not when it is asked."""
    monkeypatch.setattr(syncs_module, "BLOCK_BYTES", 100)

    async def scenario() -> None:
        disk = RealDisk(tmp_path / "log")
        file = disk.create("a", 4096)
        async with opened(KernelSyncs) as syncs:
            assert await written(syncs, file, b"abc", 0) is None
            assert await written(syncs, file, b"xyz", 3, put_off=True) is None
        assert disk.read("a", 0, 8) == b"abcxyz\0\0"
        file.close()

    asyncio.run(scenario())


def test_syncs_that_were_closed_leave_room_for_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", 4096)
        for _ in range(20):
            async with opened(KernelSyncs) as syncs:
                assert await written(syncs, file, b"x", 0) is None
        file.close()

    before = int(Path("/proc/sys/fs/aio-nr").read_text())
    asyncio.run(scenario())
    assert int(Path("/proc/sys/fs/aio-nr").read_text()) < before + 20 * 20


def test_a_write_under_way_is_left_to_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        file = RealDisk(tmp_path / "log").create("a", 4096)
        for _ in range(5):
            async with opened(KernelSyncs) as syncs:
                syncs.write(file, b"x", 0, lambda error: pytest.fail("told after its end"))
            async with opened(KernelSyncs) as syncs:
                assert await written(syncs, file, b"x", 0) is None
        file.close()

    asyncio.run(scenario())


class ReadOnly:
    """A file that its descriptor does not let anybody write."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def pwrite(self, data: bytes, offset: int) -> None:
        os.pwrite(self.descriptor, data, offset)

    def fdatasync(self) -> None:
        os.fdatasync(self.descriptor)
