"""A feed worker that is no process: it lives in its server's loop, and dies when a test says so."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.changefeed.sinks.duckdb.hosting.host import MirrorHost
from tailrace.changefeed.sinks.duckdb.mirror_file import run_whole
from tailrace.kvlayer.clock import WallClock
from tailrace.kvlayer.process.offload import Offload
from tailrace.kvlayer.worker import Channel, Started
from tests.harness.loop_doorbell import LoopDoorbell

RING_BYTES = 64 * 1024


class LoopWorker:
    """Starts workers, of which one lives at a time. Everything passes through the channel as
    between processes.

    What a call of a dead one had begun in its lane it still does: as if it had died behind that.
    """

    def __init__(self, offload: Offload, wall: WallClock, *, ring_bytes: int = RING_BYTES) -> None:
        self._offload = offload
        self._wall = wall
        self._ring_bytes = ring_bytes
        self.starts = 0
        self.host: MirrorHost | None = None
        """The one that lives."""
        self.on_frame: Callable[[str], None] = lambda name: None
        """Told of each call and each tell that comes to a worker, before that hears of it."""

    async def start(self) -> Started:
        assert self.host is None, "one at a time holds the files"
        self.starts += 1
        there, back = (memoryview(bytearray(self._ring_bytes)) for _ in range(2))
        near, far = LoopDoorbell.pair()
        host = _Host(Channel(far, back, there), self._offload, self._wall, self)
        self.host = host
        return Started(Channel(near, there, back), lambda: self._ended(host), self.kill)

    def kill(self) -> None:
        """Ends the one that lives, if one does: nothing that it was about to say is heard."""
        if self.host is not None:
            self.host.peer.end("killed")

    async def _ended(self, host: MirrorHost) -> str:
        await host.peer.ended
        host.peer.end("its server is gone")
        if hasattr(host, "files"):
            for file in host.files._files.values():
                await run_whole(file.lane, file._discard)
        self.host = None
        return "was killed by signal 9"


class _Host(MirrorHost):
    """A host that tells of what it is asked."""

    def __init__(
        self, channel: Channel, offload: Offload, wall: WallClock, worker: LoopWorker
    ) -> None:
        self._worker = worker
        super().__init__(channel, offload, wall)

    def _handlers(self) -> dict[str, Callable[..., object]]:
        def noted(name: str, handler: Callable[..., object]) -> Callable[..., object]:
            def handle(*arguments: object) -> object:
                self._worker.on_frame(name)
                return None if self.peer.gone else handler(*arguments)

            return handle

        return {name: noted(name, each) for name, each in super()._handlers().items()}
