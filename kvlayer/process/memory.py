"""The memory that a process may use, and the shares of it that caches and buffers may take.

In a container the machine's memory says nothing: beyond the limit of its control group a process is
killed by the kernel. So whatever is sized in memory asks here how much it may be:

    limit of the control group   384 MiB
    what a server needs itself   224 MiB
    spare                        160 MiB
    share(16, at_most=128 MiB)    10 MiB    the engine's cache
    share(5, at_most=2 GB)        32 MiB    DuckDB, for queries

From 11 GiB on every share is its greatest. Those that a server with one mirror fills at one moment
are less than the spare memory together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

OWN_BYTES = 224 << 20
"""Memory that is in no share: 145 MiB of a server at its start, the work of statements, and what
allocators keep."""

SERVER_BYTES_MIN = 320 << 20
"""Memory with less than which a server does not start: the shares would be too small to work in."""

_CONTROLLER = "memory"
_FILES = {"cgroup2": ("memory.max", "memory.high"), "cgroup": ("memory.limit_in_bytes",)}
"""The files of a control group's limits, by the type of its file system."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The bytes that a process may use, and what says so."""

    byte_count: int
    source: str

    def __str__(self) -> str:
        return f"{self.byte_count >> 20} MiB of memory ({self.source})"


def memory_limit(root: Path = Path("/")) -> MemoryLimit:
    """Returns the least of the machine's memory and of the limits of the process's control groups,
    of version 1 and 2, those around its own among them. `root` is where `proc` and `sys` are."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    least = MemoryLimit(machine, "the machine's")
    with suppress(OSError):  # other systems than Linux have no such files
        for file in _limit_files(root):
            with suppress(OSError):  # the outermost group, and one without the controller, has none
                text = file.read_text().strip()
                if text.isdecimal() and int(text) < least.byte_count:  # else it is "max"
                    least = MemoryLimit(int(text), f"by {file}")
    return least


def _limit_files(root: Path) -> Iterator[Path]:
    mounts = [line.split() for line in (root / "proc/self/mountinfo").read_text().splitlines()]
    for line in (root / "proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and _CONTROLLER not in controllers.split(","):
            continue
        kind = "cgroup" if controllers else "cgroup2"
        for fields in mounts:
            found, _, options = fields[fields.index("-") + 1 :][:3]
            if found == kind and (kind == "cgroup2" or _CONTROLLER in options.split(",")):
                top = root / fields[4].lstrip("/")
                for group in _groups(top, PurePosixPath(path), mounted=fields[3]):
                    yield from (group / name for name in _FILES[kind])


def _groups(top: Path, path: PurePosixPath, *, mounted: str) -> Iterator[Path]:
    """The folder of a control group, and of those around it, where the group `mounted` is at `top`.
    A container's process may be told a path of the machine, of which it sees its own part alone."""
    group = top / path.relative_to(mounted) if path.is_relative_to(mounted) else top
    while group != top:
        yield group
        group = group.parent
    yield top


LIMIT = memory_limit()
"""Of this process. A limit that is changed while it runs counts from the next start."""


def share(parts: int, *, at_most: int) -> int:
    """Returns the bytes of one of so many `parts` of the spare memory, and never more than
    `at_most`."""
    spare = max(LIMIT.byte_count, SERVER_BYTES_MIN) - OWN_BYTES
    return min(spare // parts, at_most)
