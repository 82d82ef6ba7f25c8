"""Backups of a store that is served, as the tar archive that its door sends."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tarfile import BLOCKSIZE, TarInfo

from ...catalog.values.errors import SQLError
from ...kvlayer.files.data_folder import CHECKPOINT, CLOCK, ENGINE, FORMAT, LOG
from ...kvlayer.log import segment_name
from ...kvlayer.process.offload import OffloadLane
from ...kvlayer.store import Store
from .stored_file import CHUNK_BYTES

_END = bytes(2 * BLOCKSIZE)


class Backups:
    """Takes backups of the store in a data folder, one at a time.

    `checkpoint` makes a folder the engine's state of one moment, in links: it lies in the data
    folder until its backup is sent. Such a state lacks nothing that was applied before, so the log
    of the backup is empty, and begins behind it.
    """

    def __init__(
        self, store: Store, checkpoint: Callable[[Path], None], folder: Path, lane: OffloadLane
    ) -> None:
        self._store = store
        self._make_checkpoint = checkpoint
        self._folder = folder
        self._lane = lane
        self._busy = False

    async def begin(self) -> ServedBackup:
        """A backup of everything that was acknowledged before the call; close it.

        Raises SQLError 55006 while another is taken, 58030 where the disk refuses.
        """
        if self._busy:
            raise SQLError(
                "55006", "another backup is being taken", hint="Wait until it has ended."
            )
        self._busy = True
        place = self._folder / CHECKPOINT
        try:
            await self._lane.run(partial(_remove, place))
            await self._lane.run(partial(self._checkpointed, place))
            # What the engine has, the log might still lose, and nobody has heard of.
            await self._store.log.wait_durable(self._store.log.last_index)
            # Last: its bound is above every timestamp of the checkpoint.
            files = await self._lane.run(partial(_files, self._folder, place))
        except BaseException:
            await self._end()
            raise
        return ServedBackup(files, self._lane, self._end)

    def _checkpointed(self, place: Path) -> None:
        try:
            self._make_checkpoint(place)
        except Exception as error:  # the engine's binding raises nothing more exact
            raise SQLError("58030", f"cannot make {place}: {error}") from error

    async def _end(self) -> None:
        try:
            await self._lane.run(partial(_remove, self._folder / CHECKPOINT))
        finally:
            self._busy = False


@dataclass(frozen=True, slots=True)
class _File:
    """A member of the archive: a file that stays as it is, or a few bytes."""

    name: str
    size: int
    content: Path | bytes

    def header(self) -> bytes:
        info = TarInfo(self.name)
        info.size, info.mode = self.size, 0o600
        return info.tobuf()


class ServedBackup:
    """A backup on its way. `size` is what `chunks` comes to."""

    def __init__(
        self, files: list[_File], lane: OffloadLane, end: Callable[[], Awaitable[None]]
    ) -> None:
        self._files = files
        self._lane = lane
        self.close = end
        self.size = sum(BLOCKSIZE + each.size + _padding(each.size) for each in files) + len(_END)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The archive, in pieces of CHUNK_BYTES at most."""
        for file in self._files:
            yield file.header()
            if isinstance(file.content, bytes):
                yield file.content
            else:
                for offset in range(0, file.size, CHUNK_BYTES):
                    yield await self._lane.run(partial(_read, file.content, offset))
            yield bytes(_padding(file.size))
        yield _END


def _files(folder: Path, checkpoint: Path) -> list[_File]:
    engine = [
        _File(f"{ENGINE}/{each.name}", each.stat().st_size, each)
        for each in sorted(checkpoint.iterdir())
    ]
    clock, form = ((folder / name).read_bytes() for name in (CLOCK, FORMAT))
    return [
        _File(CLOCK, len(clock), clock),
        *engine,
        _File(f"{LOG}/{segment_name(1)}", 0, b""),
        _File(FORMAT, len(form), form),
    ]


def _read(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(CHUNK_BYTES)


def _padding(size: int) -> int:
    return -size % BLOCKSIZE


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
