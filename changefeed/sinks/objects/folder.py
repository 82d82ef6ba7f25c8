"""The folder of a feed in a bucket: an object is there whole, or not at all.

A file is written to a temporary file of the node, which no crash leaves behind, and sent when it is
complete: by one request where it is small, otherwise in parts that the store puts together at the
end. Where the store shows what is under way (`Store.shows_unfinished`), it is sent to a hidden
folder of the feed, and the store copies what is whole to its place:

    .tailrace-00000c5b…/2024…-orders-3.ndjson  ->  2024-01-31/2024…-orders-3.ndjson

A request whose answer is lost may still be carried out (`late`).
"""

from __future__ import annotations

import posixpath
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, TypeVar

import pyarrow as pa
from pyarrow import fs

from ....kvlayer.clock import Timestamp
from ..files.names import job_part, last_time
from ..uri import REDACTED
from .location import ObjectsLocation

T = TypeVar("T")

MEMORY_BYTES_MAX = 1 << 20
"""A file of more bytes is on disk while it is written."""
SEND_BYTES = 8 << 20
"""How much of a file is in memory while it is sent."""


class ObjectsFolder:
    """The files of one feed. Every method does I/O and raises OSError, whose words hold no secret:
    call it in a lane."""

    late = True

    def __init__(self, location: ObjectsLocation, job_id: int) -> None:
        self.shown = location.shown
        self._location = location
        self._job_id = job_id
        self._client: fs.FileSystem | None = None
        self._unfinished: dict[int, _Spool] = {}
        self._hidden = f"{location.path}/.tailrace-{job_part(job_id)}"

    def open(self) -> None:
        self._client = self._told(self._location.connect)
        if self._location.store.shows_unfinished:
            self._told(self._remove_unfinished)

    def begin(self, number: int) -> IO[bytes]:
        spool = self._unfinished[number] = _Spool(max_size=MEMORY_BYTES_MAX)
        return spool

    def publish(self, number: int, name: str) -> None:
        spool = self._unfinished.pop(number)
        try:
            self._told(lambda: self._send(spool, name))
        finally:
            spool.release()

    def close(self) -> None:
        for spool in self._unfinished.values():
            spool.release()
        self._unfinished.clear()

    def last_time(self) -> Timestamp:
        return last_time(self._names_by_partition(self._location.path), self._job_id)

    def owners(self) -> list[str]:
        """None: whoever is told of each object of a bucket would take a mark for changes, and
        credentials may be such as remove nothing."""
        return []

    def mark_owner(self, name: str) -> None: ...

    def forget_owner(self, name: str) -> None: ...

    def obstacle(self) -> str | None:
        """The reason for which the bucket does not serve, if so."""
        try:
            self.open()
            info = self._told(lambda: self._connected.get_file_info([self._location.bucket])[0])
        except OSError as error:
            return str(error)
        if info.type is fs.FileType.NotFound:
            return f"bucket {self._location.bucket} does not exist"
        return None

    @property
    def _connected(self) -> fs.FileSystem:
        assert self._client is not None, "open comes first"
        return self._client

    def _send(self, spool: _Spool, name: str) -> None:
        path = f"{self._location.path}/{name}"
        if not self._location.store.shows_unfinished:
            self._upload(spool, path)
            return
        hidden = f"{self._hidden}/{posixpath.basename(name)}"
        self._upload(spool, hidden)
        self._connected.copy_file(hidden, path)
        self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        """Removes what is in the hidden folder.

        HAZARD: not file by file. Arrow takes a lease on a blob of Azure's that it deletes, and
        where the lease cannot be given back, for an answer was lost, it aborts the process.
        """
        self._connected.delete_dir_contents(self._hidden, missing_dir_ok=True)

    def _upload(self, spool: _Spool, path: str) -> None:
        spool.seek(0)
        stream = self._connected.open_output_stream(path, compression=None)
        while piece := spool.read(SEND_BYTES):
            stream.write(piece)  # where this fails, so does every close: no part is taken for all
        stream.close()

    def _names_by_partition(self, path: str) -> Iterator[list[str]]:
        """The names of objects, folder by folder, the later folders first."""
        selector = fs.FileSelector(path, allow_not_found=True)
        entries = self._told(lambda: self._connected.get_file_info(selector))
        for info in sorted(entries, key=lambda info: info.path, reverse=True):
            hidden = posixpath.basename(info.path).startswith(".")
            if info.type is fs.FileType.Directory and not hidden:
                yield from self._names_by_partition(info.path)
        yield [posixpath.basename(info.path) for info in entries]

    def _told(self, call: Callable[[], T]) -> T:
        """Returns the result of `call`. Its error is raised as an OSError without secrets."""
        try:
            return call()
        except (OSError, pa.ArrowException) as error:
            text = str(error)
        for secret in self._location.secrets:
            text = text.replace(secret, REDACTED)
        raise OSError(text)


class _Spool(tempfile.SpooledTemporaryFile[bytes]):
    """A file that its writer closes when it is complete, and that can then be read."""

    def close(self) -> None:
        """The writer is done; the file is read on, until `release` removes it."""

    def __exit__(self, *error: object) -> None:
        self.close()

    def release(self) -> None:
        with suppress(OSError):
            super().close()
