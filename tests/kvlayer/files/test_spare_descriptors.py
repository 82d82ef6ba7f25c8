"""A process that has no descriptors left still writes its store's files."""

from __future__ import annotations

import errno
import gc
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.kvlayer.files.data_folder import DataFolder
from tailrace.kvlayer.files.disk import RealDisk
from tailrace.kvlayer.files.spare_descriptors import SPARES, SpareDescriptors


@contextmanager
def no_descriptors() -> Iterator[None]:
    """All that the process may have are taken.

    The limit is above every descriptor in use: one above it would make no room when it is closed.
    Nothing is collected meanwhile, for objects that other tests left may hold descriptors.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    gc.disable()
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 20, hard)
    )
    taken: list[int] = []
    try:
        with pytest.raises(OSError) as refused:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        assert refused.value.errno == errno.EMFILE
        yield
    finally:
        gc.enable()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)


def test_the_store_writes_its_files_all_the_same(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "log", SpareDescriptors())
    bare = RealDisk(tmp_path / "bare")
    with no_descriptors():
        with pytest.raises(OSError, match="Too many open files"):
            bare.create("a", 1)
        for number in range(20):
            disk.create(f"{number}", 4096).close()
            disk.replace("bound", b"%d" % number)
            disk.sync_folder()
            assert disk.read("bound") == b"%d" % number


@pytest.mark.parametrize(
    "write",
    [
        lambda folder: folder.disk.create("0000000000000001.log", 4096).close(),
        lambda folder: folder.clock_bounds.save(1234),
    ],
    ids=["log", "clock"],
)
def test_a_data_folder_has_spares(write: Callable[[DataFolder], None], tmp_path: Path) -> None:
    folder = DataFolder.open(tmp_path / "data")
    with no_descriptors():
        write(folder)
    folder.close()


def test_spares_come_to_an_end_and_back(tmp_path: Path) -> None:
    spares = SpareDescriptors()
    with no_descriptors():
        opened = [spares.open(os.devnull, os.O_RDONLY) for _ in range(SPARES)]
        with pytest.raises(OSError, match="Too many open files"):
            spares.open(os.devnull, os.O_RDONLY)
        for descriptor in opened:
            os.close(descriptor)
        os.close(spares.open(os.devnull, os.O_RDONLY))
        assert len(spares._spares) == SPARES - 1, "one is open while the spares are taken again"
    spares.close()
    assert spares._spares == []
