"""The demo of the relaxed log, from beginning to end."""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from ....error import Error
from ...embedded import AsyncDatabase
from ..server import demo_server
from .following import LogFollower, Progress
from .mirrored import MIRROR, image_of_rows, mirror_image, rows_query, schema_statements
from .writers import HANGS, CrashStore, read_cuts

PROCESSES = 4
THREADS = 4
SECONDS = 10.0
LOAD_SECONDS = 0.05
"""Between two loads of what the log has become."""

LOOK_SECONDS = 0.02
"""Between two looks at the mirror, which moves a few times a second."""

HANG_SECONDS = 1.0
"""How long a process hangs in a batch before it is killed: meanwhile no state can be shown."""


class WriterFailed(Error):
    """A process of the crash store ended by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashOutcome:
    """The findings in the mirror. `unknown_states` are those that the crash store never had, and
    `differences` counts the ends that differ: of the mirror, and of the server's tables."""

    progress: Progress
    recorded: int
    looks: int
    states: int
    unknown_states: int
    ends_that_differ: int

    @property
    def differences(self) -> int:
        return self.unknown_states + self.ends_that_differ

    def metrics(self) -> dict[str, float]:
        return {
            "lines": self.progress.lines,
            "change_sets": self.progress.change_sets,
            "snapshots": self.progress.snapshots,
            "recorded_states": self.recorded,
            "mirrored_states": self.states,
            "unknown_states": self.unknown_states,
            "differences": self.differences,
        }


async def run_crash_demo(
    folder: Path, console: Console, *, seconds: float = SECONDS
) -> CrashOutcome:
    """Writes the crash store by many threads of several processes, kills one, and mirrors it
    meanwhile. Every state that the mirror shows is looked up among those that the store had."""
    crashes = folder.with_name(f"{folder.name}-crashes")
    crashes.mkdir(parents=True)
    store = CrashStore(crashes)
    async with demo_server(folder, console) as database:
        for statement in schema_statements():
            await database.sql(statement)
        await database.mirror(MIRROR).wait()
        follower = LogFollower(database.node, crashes)
        watch = MirrorWatch(database)
        async with writing_processes(crashes, console, seconds) as writing, watch.running():
            while not writing.done():
                await follow(follower, store)
                await asyncio.sleep(LOAD_SECONDS)
            await writing
            while await follow(follower, store):
                await asyncio.sleep(LOAD_SECONDS)
            await database.mirror(MIRROR).wait()
        end = await watch.look()
        source = image_of_rows((await database.sql(rows_query())).arrow())
    existed = set(read_cuts(crashes).values())
    outcome = CrashOutcome(
        progress=follower.progress,
        recorded=len(existed),
        looks=watch.looks,
        states=len(watch.seen),
        unknown_states=len(watch.seen - existed),
        ends_that_differ=(end != store.image()) + (source != store.image()),
    )
    _print(console, outcome)
    return outcome


class MirrorWatch:
    """Reads the mirror again and again, and keeps every state that it showed."""

    def __init__(self, database: AsyncDatabase) -> None:
        self.seen: set[bytes] = set()
        self.looks = 0
        self._mirror = database.mirror(MIRROR)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks all the time. Raises what a look raised."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> bytes:
        image = await mirror_image(self._mirror)
        self.seen.add(image)
        self.looks += 1
        return image


async def follow(follower: LogFollower, store: CrashStore) -> bool:
    """Loads what is new, and has the store look at itself where the server knows no state of it.
    Returns whether something is left to load."""
    domains = await follower.load()
    if not domains or any(domain.position is None for domain in domains):
        await asyncio.to_thread(store.snapshot)
        follower.progress.snapshots += 1
        return True
    await asyncio.to_thread(store.domain.in_flight)
    return any(domain.pending or domain.gaps for domain in domains)


@asynccontextmanager
async def writing_processes(
    crashes: Path, console: Console, seconds: float
) -> AsyncIterator[asyncio.Task[None]]:
    """The processes that write, for so long; whatever happens, none of them is left."""
    processes: list[Process] = []
    writing = asyncio.create_task(_write(crashes, console, seconds, processes))
    try:
        yield writing
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _write(crashes: Path, console: Console, seconds: float, processes: list[Process]) -> None:
    """Raises WriterFailed."""
    began = time.monotonic()
    for seed in range(PROCESSES):
        options = ["--hang"] if seed == 0 else []
        command = (sys.executable, "-m", f"{__package__}.writers", str(crashes), str(THREADS))
        process = await asyncio.create_subprocess_exec(
            *command, str(seed), *options, stdin=PIPE, stdout=PIPE
        )
        processes.append(process)
    console.print(f"{PROCESSES} processes of {THREADS} threads write the crash store")
    await asyncio.sleep(seconds / 3)
    doomed, *others = processes
    assert doomed.stdout is not None
    if (await doomed.stdout.readline()).decode().strip() != HANGS:
        raise WriterFailed(f"process {doomed.pid} ended with status {await doomed.wait()}")
    console.print(f"process {doomed.pid} hangs in a batch: no state is shown behind it")
    await asyncio.sleep(HANG_SECONDS)
    doomed.kill()
    console.print(f"process {doomed.pid} is killed: its epoch is not complete")
    await asyncio.sleep(max(seconds - (time.monotonic() - began), 0))
    for process in others:
        assert process.stdin is not None
        process.stdin.close()
        if status := await process.wait():
            raise WriterFailed(f"process {process.pid} ended with status {status}")


def _print(console: Console, outcome: CrashOutcome) -> None:
    progress = outcome.progress
    console.print(
        f"{progress.lines:,} lines became {progress.change_sets:,} change sets, with "
        f"{progress.snapshots} snapshots: at the beginning and behind the death"
    )
    console.print(
        f"{outcome.looks:,} looks at the mirror saw {outcome.states:,} states, of "
        f"{outcome.recorded:,} that the crash store had at rest"
    )
    if outcome.unknown_states:
        console.print(f"[red]{outcome.unknown_states:,} states never existed[/red]")
    if outcome.ends_that_differ:
        console.print("[red]the mirror does not end as the crash store does[/red]")
    if not outcome.differences:
        console.print("Every one of them existed, and the last is the crash store, bit for bit.")
