"""Domains on a real machine: its clock, its randomness, its files.

    domain = local_domain(folder)                 one process; a child has a domain of its own
    domain = shared_domain(folder)                every process that says so shares it

Each process writes a segment of its own in the folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from .attachment import QUIESCE_WITHIN_NS, Attachment, LocalAttachment
from .domain import Domain
from .ids import boot_offset_ns, machine_clock, random_domain
from .segment import SegmentWriter
from .shared import (
    MEMORY_SIZE,
    FileLives,
    FileLock,
    MappedMemory,
    SharedAttachment,
    SharedMemory,
    domain_of,
    fresh,
    new_state,
    offset_of,
)

WAIT_SECONDS = 0.001
"""Between two looks at whether a domain has come to rest."""

SEGMENT_SUFFIX = ".relaxed"


def pause() -> None:
    time.sleep(WAIT_SECONDS)


def local_domain(folder: Path, *, quiesce_within_ns: int = QUIESCE_WITHIN_NS) -> Domain:
    """A new domain of this process, whose segment is in `folder`. Raises OSError."""
    now_ns = machine_clock()

    def attach() -> Attachment:
        domain = random_domain()
        log = SegmentWriter(folder / f"{domain:016x}-{os.getpid()}{SEGMENT_SUFFIX}", domain)
        return LocalAttachment(
            domain, log, now_ns, renew=attach, quiesce_within_ns=quiesce_within_ns
        )

    return Domain(attach(), now_ns, pause, patience_ns=quiesce_within_ns)


def shared_domain(
    folder: Path,
    *,
    quiesce_within_ns: int = QUIESCE_WITHIN_NS,
    map_memory: Callable[[int], SharedMemory] = MappedMemory,
) -> Domain:
    """The domain whose state is the file `domain` of the folder; a new one where there is none.

    `map_memory` maps an open file. Raises OSError, SharedStateDamaged, SlotsTaken.
    """
    inherited: list[Callable[[], None]] = []

    def attach() -> Attachment:
        for leave in inherited:
            leave()
        inherited.clear()
        descriptor = os.open(folder / "domain", os.O_RDWR | os.O_CREAT, 0o600)
        lives = FileLives(folder)
        inherited.extend((lambda: os.close(descriptor), lives.abandon))
        lock = FileLock(descriptor)
        lock.acquire()
        try:
            memory = _memory(descriptor, map_memory)
        finally:
            lock.release()
        domain = domain_of(memory)
        log = SegmentWriter(
            folder / f"{domain:016x}-{os.getpid()}-{time.time_ns()}{SEGMENT_SUFFIX}", domain
        )
        return SharedAttachment(
            memory,
            lock,
            lives,
            log,
            machine_clock(offset_of(memory)),
            pid=os.getpid(),
            renew=attach,
            quiesce_within_ns=quiesce_within_ns,
        )

    return Domain(attach(), machine_clock(), pause, patience_ns=quiesce_within_ns)


def _memory(descriptor: int, map_memory: Callable[[int], SharedMemory]) -> SharedMemory:
    if os.fstat(descriptor).st_size < MEMORY_SIZE:
        os.ftruncate(descriptor, MEMORY_SIZE)
    memory = map_memory(descriptor)
    if fresh(memory):
        new_state(memory, random_domain(), boot_offset_ns())
    return memory
