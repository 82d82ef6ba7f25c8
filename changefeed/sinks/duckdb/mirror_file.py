"""A DuckDB file, open once in this process and shared by all who write or read it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import duckdb

from ....kvlayer.process.memory import share
from ....kvlayer.process.offload import OffloadLane
from ..protocol import SinkError
from .errors import breaks_database, open_error

T = TypeVar("T")

WAL_BYTES_MAX = 64 * 1024 * 1024
COMMITS_MAX = 20_000
"""A checkpoint is due at the latest now: reopening replays about 2,500 small commits a second."""

RETRY_SECONDS_MIN = 1.0
RETRY_SECONDS_MAX = 300.0
"""Behind a checkpoint that failed, and twice as long behind each one more: each reads the whole
log, and the disk that had no room for it has none a flush later."""

FAILURES_COUNTED_MAX = 10
"""By then the pause has reached its limit."""

IDLE_COMMITS_MIN = 500
IDLE_SECONDS = 1.0
"""A checkpoint of a million rows takes a quarter of a second, so it waits for a quiet moment."""

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # the fastest for small commits; readers and the writer have a thread each
    "async_threads": 0,  # eight a file otherwise; who waits for a block reads it himself
    "checkpoint_threshold": "1GB",  # DuckDB's own would stop a commit at any moment: see above
    "enable_external_access": "false",  # a reader's SQL opens no files
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",  # nor does it see this process's variables
    # DuckDB's own, which one reader could take, is 80 % of the machine.
    "memory_limit": f"{share(5, at_most=2_000_000_000)}B",
    "max_temp_directory_size": "4GB",  # and of the disk, 90 %
}


async def run_whole(lane: OffloadLane, call: Callable[[], T]) -> T:
    """Runs `call` in its lane to the end, even where the caller is cancelled meanwhile.

    A cancelled caller that went on while its transaction still ran would not know whether it holds.
    """
    outcome = lane.run(call)
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        await asyncio.wait([outcome])
        if not outcome.cancelled():
            outcome.exception()
        raise


@contextmanager
def transaction(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """BEGIN and COMMIT around a block. What fails is rolled back."""
    cursor.execute("BEGIN")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        with suppress(duckdb.Error):  # a failed COMMIT has ended it, a broken instance has none
            cursor.execute("ROLLBACK")
        raise


def _file_at(path: Path) -> tuple[int, int] | None:
    """The device and inode of the file at a path; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


class MirrorFile:
    """The one instance of a file. DuckDB lets one process hold a file, and so one instance.

    All writing happens in `lane`, one call at a time, so no two write transactions ever meet and
    `epochs` is exact. Readers use their own lanes and cursors, and see snapshots. The file is open
    while it has users; the last one to go checkpoints it, and no write-ahead log is left.
    """

    def __init__(self, path: Path, lane: OffloadLane, copy_lane: OffloadLane) -> None:
        self.path = path
        self.lane = lane
        self.copy_lane = copy_lane
        """The lane of copies, which run beside what is written."""
        self.epochs: dict[int, int] = {}
        """The greatest epoch that opened each job's feed here. Only calls in the lane touch it."""
        self.fresheners: set[Callable[[], Awaitable[None]]] = set()
        """A call for each feed that writes here, which makes an idle feed's progress durable."""
        self._users = 0
        self._instance: duckdb.DuckDBPyConnection | None = None
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._broken = False
        self._opened: tuple[int, int] | None = None
        """The device and the inode of the file that is open."""
        self._commits = 0
        self._wal_bytes = 0
        self._wal_path = f"{path}.wal"
        self._idle: asyncio.TimerHandle | None = None
        self._checkpointing: asyncio.Future[None] | None = None
        self._failures = 0
        """Checkpoints in a row that failed."""
        self._retry_at = 0.0

    async def acquire(self) -> None:
        """Opens the file if nobody has. Raises SinkError or SinkRefused, naming the file."""
        self._users += 1
        try:
            await run_whole(self.lane, self._open)
        except BaseException:
            # A caller that was cancelled has waited until it was open: nobody else will shut it.
            await self.release()
            raise

    async def release(self) -> None:
        """The counterpart of `acquire`: the last user closes the file."""
        assert self._users > 0, self.path
        self._users -= 1
        if self._users:
            return
        self._cancel_idle()
        if self._checkpointing is not None:
            await asyncio.wait([self._checkpointing])
        await run_whole(self.lane, self._close_unused)

    @property
    def used(self) -> bool:
        """Whether somebody has acquired it, or is about to."""
        return self._users > 0

    @property
    def open(self) -> bool:
        return self._instance is not None

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection of its own to the instance; give it back to `close_cursor`."""
        assert self._instance is not None, self.path
        cursor = self._instance.cursor()
        self._cursors.add(cursor)
        return cursor

    def close_cursor(self, cursor: duckdb.DuckDBPyConnection) -> None:
        self._cursors.discard(cursor)
        cursor.close()

    @contextmanager
    def using_cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """`cursor` and `close_cursor` around a block; what it began and did not end is undone."""
        cursor = self.cursor()
        try:
            yield cursor
        finally:
            self.close_cursor(cursor)

    def note_error(self, error: BaseException) -> None:
        """After an error that DuckDB does not survive, the next `acquire` opens the file anew."""
        if breaks_database(error):
            self._broken = True

    async def freshen(self) -> None:
        """Brings the progress of idle feeds up to date. Somebody is about to look."""
        await asyncio.gather(*[freshen() for freshen in self.fresheners])

    # Checkpoints

    def note_commit(self) -> None:
        """Called in the lane after each commit. Raises SinkError where nobody will find it: what
        was opened is not what lies at the path now."""
        self._check_place()
        self._commits += 1
        try:
            self._wal_bytes = os.stat(self._wal_path).st_size
        except FileNotFoundError:
            self._wal_bytes = 0

    def after_flush(self) -> None:
        """Called in the loop after each flush: decides when the next checkpoint is."""
        self._cancel_idle()
        if asyncio.get_running_loop().time() < self._retry_at:
            return
        if self._commits >= COMMITS_MAX or self._wal_bytes >= WAL_BYTES_MAX:
            self._start_checkpoint()
        elif self._commits >= IDLE_COMMITS_MIN or self._wal_bytes >= WAL_BYTES_MAX // 16:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(IDLE_SECONDS, self._start_checkpoint)

    def _start_checkpoint(self) -> None:
        self._idle = None
        if self._checkpointing is None:
            self._checkpointing = asyncio.ensure_future(self._checkpoint())

    async def _checkpoint(self) -> None:
        try:
            if await self.lane.run(self._checkpoint_now):
                self._failures, self._retry_at = 0, 0.0
            else:
                pause = min(RETRY_SECONDS_MIN * 2**self._failures, RETRY_SECONDS_MAX)
                self._retry_at = asyncio.get_running_loop().time() + pause
                self._failures = min(self._failures + 1, FAILURES_COUNTED_MAX)
        finally:
            self._checkpointing = None

    @asynccontextmanager
    async def checkpointed(self) -> AsyncIterator[None]:
        """The file itself is the database as of the block's beginning: until its end there is no
        checkpoint but one that DuckDB makes behind `checkpoint_threshold` bytes of log.

        Raises SinkError where there can be no checkpoint now.
        """
        while self._checkpointing is not None:
            await asyncio.wait([self._checkpointing])
        self._cancel_idle()
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._checkpointing = ended
        try:
            if not self.open or not await run_whole(self.lane, self._checkpoint_now):
                raise SinkError(f"mirror file {self.path} cannot be checkpointed")
            yield
        finally:
            self._checkpointing = None
            ended.set_result(None)

    def _checkpoint_now(self) -> bool:
        """Says whether it did not fail: what is committed is in the log, and a later one may
        succeed."""
        if self._instance is None or self._broken:
            return True
        try:
            self._instance.execute("CHECKPOINT")
        except duckdb.Error as error:
            self.note_error(error)
            return False
        self._commits = self._wal_bytes = 0
        return True

    def _cancel_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    # In the lane

    def _open(self) -> None:
        if self._broken or (self._instance is not None and _file_at(self.path) != self._opened):
            self._discard()
        if self._instance is not None:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            instance = duckdb.connect(str(self.path), config=dict(CONFIG))
            try:
                instance.execute("SET GLOBAL TimeZone = 'UTC'")
                instance.execute("SET lock_configuration = true")
            except duckdb.Error:
                instance.close()  # else the next one to open the file gets this instance again
                raise
        except duckdb.Error as error:
            raise open_error(self.path, error) from error
        except OSError as error:
            raise open_error(self.path, duckdb.IOException(str(error))) from error
        self._instance = instance
        self._opened = _file_at(self.path)
        self.epochs.clear()
        self._commits = self._wal_bytes = 0

    def _check_place(self) -> None:
        if _file_at(self.path) != self._opened:
            self._broken = True
            raise SinkError(
                f"mirror file {self.path} was removed or replaced while a changefeed wrote it"
            )

    def _close_unused(self) -> None:
        if self._users or self._instance is None:
            return
        self._checkpoint_now()
        self._discard()

    def _discard(self) -> None:
        """Closes every connection: only then does DuckDB let go of the instance."""
        for cursor in self._cursors:
            cursor.interrupt()
            cursor.close()
        self._cursors.clear()
        if self._instance is not None:
            self._instance.close()
        self._instance = None
        self._broken = False

    def __repr__(self) -> str:
        state = "open" if self.open else "closed"
        return f"<MirrorFile {self.path} {state} users={self._users}>"
