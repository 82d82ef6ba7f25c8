"""The workers of a process, as the kernel lists them: feed workers, or those of another module."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

FEEDS = b"tailrace.changefeed.sinks.duckdb.hosting"
QUERIES = b"tailrace.sql.execute.query.worker"


def worker_pids(parent: int | None = None, *, of: bytes = FEEDS) -> list[int]:
    """The living workers of this process, or of another one."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            pid = int(folder.name)
            state, ppid = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            module = (folder / "cmdline").read_bytes().split(b"\0")[3]
            if (int(ppid), module) == (parent or os.getpid(), of) and state != "Z":
                found.append(pid)
    return found


async def kill_worker(*, of: bytes = FEEDS) -> None:
    """Kills the worker of this process, and returns when it has ended."""
    pid = await worker_pid(of=of)
    os.kill(pid, signal.SIGKILL)
    while pid in worker_pids(of=of):
        await asyncio.sleep(0.001)


async def worker_pid(*, of: bytes = FEEDS) -> int:
    """The worker of this process, once there is one."""
    while not (found := worker_pids(of=of)):
        await asyncio.sleep(0.01)
    (pid,) = found
    return pid
