"""A process that has no descriptors left still writes its store's files."""

from __future__ import annotations

import errno
import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tailrace.kvlayer.disk import RealDisk
from tailrace.kvlayer.spare_descriptors import SPARES, SpareDescriptors


@contextmanager
def no_descriptors() -> Iterator[None]:
    """All that the process may have are taken."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 20, hard))
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        assert error.errno == errno.EMFILE
    try:
        yield
    finally:
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


def test_spares_come_to_an_end_and_back(tmp_path: Path) -> None:
    spares = SpareDescriptors()
    gc.collect()  # what other tests left may hold descriptors, and give them back meanwhile
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
