"""The process of a worker: how it is started, known, ended, and started again.

It is the same interpreter with a module to run, in an environment that is built of a few variables.
Two descriptors are its own: the socket that rings, and the memory, which has no name that anybody
else could open. It ends when the socket does, so it outlives no server, however that died.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from typing import Any

from ..metrics import Metrics
from ..process.child_environment import child_environment
from ..process.child_output import next_line
from .channel import Channel, SocketDoorbell
from .peer import Handler, Peer, WorkerGone

VERSION = installed_version("tailrace")
"""The version of this process, whatever is installed in its place meanwhile."""

RING_BYTES = 8 * 1024 * 1024
"""Of each direction: some slices of a feed's rows. What finds no room waits in its sender."""

START_SECONDS = 60.0
"""A worker that has not said its version by then is none."""

STOP_SECONDS = 20.0
"""How long a worker may take to end before it is killed."""

RETRY_SECONDS_MIN = 0.5
RETRY_SECONDS_MAX = 30.0
"""Behind a start that failed, and twice as long behind each one more."""

ERROR_LINES = 30
"""Lines of the worker's standard error that are kept."""


@dataclass(frozen=True, slots=True)
class Started:
    """A process that was started. `wait` returns when it has ended, with how it did; `kill` ends
    it."""

    channel: Channel
    wait: Callable[[], Awaitable[str]]
    kill: Callable[[], None]


Start = Callable[[], Awaitable[Started]]


class WorkerProcess:
    """One worker, started at the first call. The next call behind its death starts another one.

    `handlers` are what the worker may ask of this side, `version` what both are of, and
    `configuration` what it is told first.
    """

    def __init__(
        self,
        start: Start,
        handlers: Mapping[str, Handler],
        *,
        version: str,
        configuration: tuple[Any, ...],
        metrics: Metrics,
        name: str,
    ) -> None:
        self._start = start
        self._handlers = handlers
        self._version = version
        self._configuration = configuration
        self._metrics = metrics
        self._name = name
        self._peer: Peer | None = None
        self._starting: asyncio.Task[Peer] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._closed = False
        self._failures = 0
        self._failure: WorkerGone | None = None
        self._retry_at = 0.0
        metrics.put(f"{name}_alive", 0)

    async def peer(self) -> Peer:
        """The worker, which runs. Raises WorkerGone, with the reason, where it does not start."""
        while True:
            if self._peer is not None and not self._peer.gone:
                return self._peer
            if self._closed:
                raise WorkerGone("the worker process was closed")
            if self._starting is not None:
                return await asyncio.shield(self._starting)
            if self._watching is not None:
                await asyncio.shield(self._watching)  # two never have one file
            elif self._failure is not None and self._now() < self._retry_at:
                raise WorkerGone(str(self._failure))
            else:
                self._starting = asyncio.ensure_future(self._begin())

    async def close(self) -> None:
        """Ends the worker, and waits for that."""
        self._closed = True
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._peer is not None:
            self._peer.end("the worker process was closed")
        if self._watching is not None:
            await self._watching

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _begin(self) -> Peer:
        try:
            peer = await self._begin_process()
        except WorkerGone as error:
            pause = min(RETRY_SECONDS_MIN * 2**self._failures, RETRY_SECONDS_MAX)
            self._failures += 1
            self._failure, self._retry_at = error, self._now() + pause
            raise
        finally:
            self._starting = None
        self._failures, self._failure = 0, None
        return peer

    async def _begin_process(self) -> Peer:
        try:
            started = await self._start()
        except OSError as error:
            raise WorkerGone(f"the worker process cannot be started: {error}") from error
        peer = Peer(started.channel, self._handlers)
        self._watching = asyncio.ensure_future(self._watch(started, peer))
        try:
            async with asyncio.timeout(START_SECONDS):
                version = await peer.call("hello", self._version, *self._configuration)
        except TimeoutError:
            peer.end("it did not start in time")
            started.kill()
            raise WorkerGone(f"the worker process did not start in {START_SECONDS:g} s") from None
        if version != self._version:
            peer.end("it is of another version")
            raise WorkerGone(
                f"the worker process is Tailrace {version} and this server is Tailrace "
                f"{self._version}: the package was replaced while the server ran; start the "
                "server again"
            )
        self._peer = peer
        self._metrics.put(f"{self._name}_alive", 1)
        return peer

    async def _watch(self, started: Started, peer: Peer) -> None:
        """Waits for the end of the process, and only then tells those who wait for its answers:
        by then it holds nothing any more."""
        waiting = asyncio.ensure_future(started.wait())
        try:
            either: set[asyncio.Future[Any]] = {waiting, peer.ended}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                await asyncio.wait([waiting], timeout=STOP_SECONDS)
            if not waiting.done():
                started.kill()
            how = await waiting
        finally:
            if not peer.gone:  # this side has not ended it
                self._metrics.add(f"{self._name}_deaths_total")
            if self._peer is peer:
                self._peer = None
                self._metrics.put(f"{self._name}_alive", 0)
            self._watching = None
        peer.end(f"the worker process {how}")


async def start_process(module: str) -> Started:
    """Starts `module` with the descriptors of its side of a channel, and how large a ring is."""
    own, other = socket.socketpair()
    memory = _memory(2 * RING_BYTES)
    try:
        there, back = _rings(memory, RING_BYTES)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module),
            *map(str, (other.fileno(), memory, RING_BYTES)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(os.environ),
            pass_fds=(other.fileno(), memory),
        )
    except BaseException:
        own.close()
        raise
    finally:
        other.close()
        os.close(memory)
    channel = Channel(SocketDoorbell(own), there, back)
    assert process.stderr is not None
    lines: deque[str] = deque(maxlen=ERROR_LINES)
    gathering = asyncio.ensure_future(_gather(process.stderr, lines))

    async def wait() -> str:
        code = await process.wait()
        await gathering
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"{how}: {lines[-1]}" if lines else how

    def kill() -> None:
        with suppress(ProcessLookupError):
            process.kill()

    return Started(channel, wait, kill)


def inherited_channel(arguments: list[str]) -> Channel:
    """The side of a channel that a process was started with."""
    end, memory, size = map(int, arguments)
    there, back = _rings(memory, size)
    os.close(memory)
    return Channel(SocketDoorbell(socket.socket(fileno=end)), back, there)


def _memory(size: int) -> int:
    """The descriptor of memory without a name: nobody else can open it."""
    if hasattr(os, "memfd_create"):
        memory = os.memfd_create("tailrace-worker")
    else:
        with tempfile.TemporaryFile() as file:
            memory = os.dup(file.fileno())
    os.ftruncate(memory, size)
    return memory


def _rings(descriptor: int, size: int) -> tuple[memoryview, memoryview]:
    """The ring to the worker and the one from it."""
    whole = memoryview(mmap.mmap(descriptor, 2 * size))
    return whole[:size], whole[size:]


async def _gather(stream: asyncio.StreamReader, lines: deque[str]) -> None:
    while line := await next_line(stream):
        text = line.decode(errors="replace").rstrip()
        if text:
            lines.append(text)
