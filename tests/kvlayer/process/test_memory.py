"""The memory and the cores that a process may use, as control groups of either version say it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.kvlayer.process import memory
from tailrace.kvlayer.process.cores import usable_cores
from tailrace.kvlayer.process.memory import OWN_BYTES, MemoryLimit, has_spare, memory_limit, share

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20
CORES = float(len(os.sched_getaffinity(0)))

V1 = (
    "29 24 0:25 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu",
    "30 24 0:26 {root} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
)
V2 = ("31 24 0:27 {root} /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw",)


def limit(
    tmp_path: Path, groups: str, mounts: tuple[str, ...], files: dict[str, str], *, root: str = "/"
) -> MemoryLimit:
    make_groups(tmp_path, groups, mounts, files, root=root)
    return memory_limit(tmp_path)


def make_groups(
    folder: Path, groups: str, mounts: tuple[str, ...], files: dict[str, str], *, root: str = "/"
) -> None:
    """Writes `proc` and `sys` of a process in `groups` to `folder`."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(groups)
    text = "\n".join(mounts).format(root=root)
    (folder / "proc/self/mountinfo").write_text(text + "\n")
    for name, content in files.items():
        path = folder / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")


def test_of_a_group_of_version_1(tmp_path: Path) -> None:
    files = {
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/app/memory.limit_in_bytes": f"{384 * MIB}",
        "cpu/app/memory.limit_in_bytes": "1",
    }
    found = limit(tmp_path, "5:memory:/app\n4:cpu:/app\n0::/\n", V1, files)
    assert found.byte_count == 384 * MIB
    assert found.source.endswith("sys/fs/cgroup/memory/app/memory.limit_in_bytes")


def test_of_a_container_that_sees_its_own_part_of_version_1(tmp_path: Path) -> None:
    """The path is the machine's; what is mounted is the container's group."""
    files = {"memory/memory.limit_in_bytes": f"{512 * MIB}"}
    groups = "5:cpu,memory:/docker/c0ffee\n"
    assert limit(tmp_path, groups, V1, files, root="/docker/c0ffee").byte_count == 512 * MIB


def test_of_a_container_that_is_told_another_path(tmp_path: Path) -> None:
    files = {"memory/memory.limit_in_bytes": f"{512 * MIB}"}
    assert limit(tmp_path, "5:memory:/a\n", V1, files, root="/b").byte_count == 512 * MIB


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"memory.max": "max", "memory.high": "max"}, MACHINE),
        ({"memory.max": f"{300 * MIB}", "memory.high": "max"}, 300 * MIB),
        ({"memory.max": "max", "a.slice/memory.max": f"{400 * MIB}"}, 400 * MIB),
        ({"a.slice/memory.max": f"{400 * MIB}", "a.slice/b/memory.max": "max"}, 400 * MIB),
        ({"a.slice/b/memory.max": f"{400 * MIB}", "a.slice/b/memory.high": "9000"}, 9000),
        ({}, MACHINE),
    ],
)
def test_of_groups_of_version_2(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert limit(tmp_path, "0::/a.slice/b\n", V2, files).byte_count == expected


def test_of_a_system_without_control_groups(tmp_path: Path) -> None:
    assert memory_limit(tmp_path) == MemoryLimit(MACHINE, "the machine's")


def test_a_share_is_of_what_is_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LIMIT", MemoryLimit(OWN_BYTES + 160 * MIB, "a test's"))
    assert share(16, at_most=128 * MIB) == 10 * MIB
    assert share(4, at_most=16 * MIB) == 16 * MIB
    monkeypatch.setattr(memory, "LIMIT", MemoryLimit(0, "a test's"))
    assert share(16, at_most=128 * MIB) == 6 * MIB
    assert has_spare(96 * MIB)
    assert not has_spare(97 * MIB)


@pytest.mark.parametrize(
    ("groups", "mounts", "files", "expected"),
    [
        ("4:cpu:/app\n", V1, {"cpu/app/cpu.cfs_quota_us": "-1"}, CORES),
        ("4:cpu:/app\n", V1, {"cpu/app/cpu.cfs_quota_us": "50000"}, 0.5),
        ("4:cpu:/app\n", V1, {"cpu/cpu.cfs_quota_us": "75000"}, 0.75),
        ("0::/a.slice/b\n", V2, {"a.slice/b/cpu.max": "max 100000"}, CORES),
        ("0::/a.slice/b\n", V2, {"a.slice/cpu.max": "25000 100000"}, 0.25),
    ],
)
def test_the_cores_of_a_group(
    tmp_path: Path, groups: str, mounts: tuple[str, ...], files: dict[str, str], expected: float
) -> None:
    periods = {
        name.replace("quota", "period"): "100000" for name in files if name.endswith("quota_us")
    }
    make_groups(tmp_path, groups, mounts, files | periods)
    assert usable_cores(tmp_path) == expected
