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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .control_groups import VERSION_1, VERSION_2, control_groups

OWN_BYTES = 224 << 20
"""Memory that is in no share: 145 MiB of a server at its start, the work of statements, and what
allocators keep."""

SERVER_BYTES_MIN = 320 << 20
"""Memory with less than which a server does not start: the shares would be too small to work in."""

_FILES = {VERSION_1: ("memory.limit_in_bytes",), VERSION_2: ("memory.max", "memory.high")}
"""The files of a control group's limits, by its version."""


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
    for version, group in control_groups("memory", root):
        for file in (group / name for name in _FILES[version]):
            with suppress(OSError):  # the outermost group, and one without the controller, has none
                text = file.read_text().strip()
                if text.isdecimal() and int(text) < least.byte_count:  # else it is "max"
                    least = MemoryLimit(int(text), f"by {file}")
    return least


LIMIT = memory_limit()
"""Of this process. A limit that is changed while it runs counts from the next start."""


def share(parts: int, *, at_most: int) -> int:
    """Returns the bytes of one of so many `parts` of the spare memory, and never more than
    `at_most`."""
    return min(_spare_bytes() // parts, at_most)


def has_spare(byte_count: int) -> bool:
    """Whether so many bytes are spare: a process of its own for some work is worth them."""
    return _spare_bytes() >= byte_count


def _spare_bytes() -> int:
    return max(LIMIT.byte_count, SERVER_BYTES_MIN) - OWN_BYTES
