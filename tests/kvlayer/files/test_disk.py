"""Disks: the machine's, the one in memory, and the simulated one keep one set of promises."""

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tailrace.kvlayer.files.disk import Disk, MemoryDisk, RealDisk
from tests.harness.sim_disk import Operation, SimDisk


@pytest.fixture(params=["real", "memory", "simulated"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    made: dict[str, Disk] = {
        "real": RealDisk(tmp_path / "disk"),
        "memory": MemoryDisk(),
        "simulated": SimDisk(Random(1)),
    }
    yield made[request.param]


def test_created_file_is_zeros(disk: Disk) -> None:
    disk.create("b", 3_000_000).close()
    disk.create("a", 1).close()
    assert disk.names() == ["a", "b"]
    assert disk.read("b") == bytes(3_000_000)
    assert disk.read("a") == b"\0"


def test_writes_read_back(disk: Disk) -> None:
    file = disk.create("a", 10)
    file.pwrite(b"xyz", 4)
    file.fdatasync()
    disk.sync_folder()
    assert disk.read("a") == b"\0\0\0\0xyz\0\0\0"
    assert disk.read("a", 5, 3) == b"yz\0"
    assert disk.read("a", 8, 100) == b"\0\0"
    file.close()


def test_write_behind_the_end_extends(disk: Disk) -> None:
    file = disk.create("a", 2)
    file.pwrite(b"xyz", 4)
    assert disk.read("a") == b"\0\0\0\0xyz"
    file.close()


def test_opened_file_is_the_created_one(disk: Disk) -> None:
    disk.create("a", 4).close()
    file = disk.open("a")
    file.pwrite(b"x", 1)
    file.close()
    assert disk.read("a") == b"\0x\0\0"


def test_names_are_taken_once_and_freed(disk: Disk) -> None:
    disk.create("a", 1).close()
    with pytest.raises(FileExistsError):
        disk.create("a", 1)
    disk.remove("a")
    assert disk.names() == []
    for missing in (disk.open, disk.read, disk.remove):
        with pytest.raises(FileNotFoundError):
            missing("a")


def written(sim_disk: SimDisk) -> SimDisk:
    file = sim_disk.create("a", 8)
    file.fdatasync()
    sim_disk.sync_folder()
    file.pwrite(b"synced", 0)
    file.fdatasync()
    file.pwrite(b"unsynced", 0)
    return sim_disk


def test_crash_at_a_byte_keeps_what_was_before_it() -> None:
    disk = written(SimDisk(Random(1)))
    assert disk.unsynced_bytes == 8
    left = [disk.crash(cut_at=cut).read("a") for cut in range(9)]
    assert left == [b"unsynced"[:cut] + b"synced\0\0"[cut:] for cut in range(9)]


def test_crash_keeps_synced_bytes_and_any_part_of_others() -> None:
    outcomes = {written(SimDisk(Random(seed))).crash().read("a") for seed in range(200)}
    assert b"synced\0\0" in outcomes
    assert b"unsynced" in outcomes
    assert b"unsyed\0\0" in outcomes, "torn"


def test_crash_may_take_or_keep_unsynced_names() -> None:
    def names_left(seed: int) -> tuple[str, ...]:
        disk = SimDisk(Random(seed))
        disk.create("kept", 1)
        disk.create("removed", 1)
        disk.sync_folder()
        disk.remove("removed")
        disk.create("made", 1)
        return tuple(disk.crash().names())

    found = {names_left(seed) for seed in range(60)}
    assert found == {
        ("kept",),
        ("kept", "made"),
        ("kept", "removed"),
        ("kept", "made", "removed"),
    }


def test_failed_sync_loses_what_a_later_one_seems_to_save() -> None:
    left = set()
    for seed in range(50):
        disk = written(SimDisk(Random(seed)))
        disk.fail(Operation.SYNC, OSError(errno.EIO, "bad sector"))
        file = disk.open("a")
        with pytest.raises(OSError, match="bad sector"):
            file.fdatasync()
        file.fdatasync()
        assert disk.read("a") == b"unsynced", "as the page cache has it"
        left.add(disk.crash().read("a"))
    assert b"synced\0\0" in left


def test_killed_process_leaves_its_writes_to_be_read() -> None:
    disk = written(SimDisk(Random(1)))
    successor = disk.killed()
    assert successor.read("a") == b"unsynced"
    assert successor.crash(cut_at=0).read("a") == b"synced\0\0"
    successor.open("a").fdatasync()
    assert successor.crash(cut_at=0).read("a") == b"unsynced"
    assert disk.crash(cut_at=0).read("a") == b"synced\0\0", "the first disk is another"


def test_full_disk_makes_no_file() -> None:
    disk = SimDisk(Random(1))
    disk.space_left = 10
    disk.create("a", 8)
    with pytest.raises(OSError, match="No space left"):
        disk.create("b", 8)
    assert disk.names() == ["a"]
    disk.remove("a")
    disk.create("b", 8)
