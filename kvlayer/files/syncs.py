"""Syncs beside the loop: what was written to a file is made durable, and the loop is told.

Linux syncs files beside their process (io_submit(2), IOCB_CMD_FDSYNC): the call that asks returns
at once, and the kernel's own thread wakes the loop by an eventfd when the disk has answered. So
nothing of a commit's way to the disk needs a thread of Python, which costs two wake-ups and waits
for the interpreter's lock each time that it returns from the system. Where the kernel has no such
calls, or no room for them, a lane's thread does the same in a tenth of a millisecond more.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import struct
from collections.abc import Callable
from typing import Protocol

from ..process.offload import OffloadLane

Done = Callable[[BaseException | None], None]
"""Told in a later step of the loop: None, or the error of which nothing is known but that."""

_CALLS = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}
"""Numbers of io_setup, io_getevents and io_submit, which the C library does not wrap."""

_REQUEST = struct.Struct("<QIIHhIQQqQII")
"""struct iocb of linux/aio_abi.h, for a little-endian machine."""

_EVENT = struct.Struct("<QQqq")
_FDSYNC, _FLAG_EVENTFD = 3, 1
_ONE = ctypes.c_long(1)
_NONE = (-1, -1, -1)

_sync_file_range = getattr(ctypes.PyDLL(None), "sync_file_range", None)
"""Of Linux; None elsewhere."""
if _sync_file_range is not None:
    _sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
_BEGIN_WRITING = 2  # SYNC_FILE_RANGE_WRITE of linux/fs.h

_idle_contexts: list[ctypes.c_ulong] = []
"""Contexts of logs that were closed, for those that are opened: to destroy one takes 35 ms."""


class Syncable(Protocol):
    """An open file. `descriptor` is the system's; None where the file is no file of the system."""

    @property
    def descriptor(self) -> int | None: ...
    def fdatasync(self) -> None: ...


class Syncs(Protocol):
    """Syncs of one log, one at a time."""

    def start(self, file: Syncable, done: Done) -> None:
        """Makes what was written to the file before durable. Never calls `done` in this step."""
        ...

    def close(self) -> None:
        """Nobody asks any more, nor hears of what is still under way."""
        ...


def begin_writing(file: Syncable, offset: int, size: int) -> None:
    """Has the system begin to write what is in its cache, and does not wait: a sync that follows,
    which tells of failures, has the less to wait for."""
    if file.descriptor is not None and _sync_file_range is not None:
        _sync_file_range(file.descriptor, offset, size, _BEGIN_WRITING)


class LaneSyncs:
    """Syncs in the thread of a lane."""

    def __init__(self, lane: OffloadLane) -> None:
        self._lane = lane

    def start(self, file: Syncable, done: Done) -> None:
        self._lane.run(file.fdatasync).add_done_callback(lambda synced: done(synced.exception()))

    def close(self) -> None:
        """Does nothing: the lane is its owner's."""


class KernelSyncs:
    """Syncs by the kernel. What it does not take goes to the lane."""

    def __init__(self, lane: OffloadLane) -> None:
        """Raises OSError where the kernel has no room or no such calls."""
        self._others = LaneSyncs(lane)
        self._loop = asyncio.get_running_loop()
        self._done: Done | None = None
        setup, self._get, self._submit = map(ctypes.c_long, _CALLS.get(platform.machine(), _NONE))
        # The calls do not block: the interpreter's lock is kept over them.
        call = self._call = ctypes.PyDLL(None, use_errno=True).syscall
        try:
            self._context = _idle_contexts.pop()
        except IndexError:
            self._context = ctypes.c_ulong(0)
        if not self._context and call(setup, _ONE, ctypes.byref(self._context)) != 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._request = ctypes.create_string_buffer(_REQUEST.size)
        self._requests = (ctypes.c_void_p * 1)(ctypes.addressof(self._request))
        self._event = ctypes.create_string_buffer(_EVENT.size)
        self._loop.add_reader(self._wake, self._answered)

    def start(self, file: Syncable, done: Done) -> None:
        assert self._done is None, "one sync at a time"
        descriptor = file.descriptor
        if descriptor is None:
            self._others.start(file, done)
            return
        asked = (0, 0, 0, _FDSYNC, 0, descriptor, 0, 0, 0, 0, _FLAG_EVENTFD, self._wake)
        _REQUEST.pack_into(self._request, 0, *asked)
        if self._call(self._submit, self._context, _ONE, self._requests) == 1:
            self._done = done
        else:
            self._others.start(file, done)

    def _answered(self) -> None:
        os.eventfd_read(self._wake)
        got = self._call(self._get, self._context, _ONE, _ONE, self._event, None)
        done, self._done = self._done, None
        assert got == 1, got
        assert done is not None
        (_, _, result, _) = _EVENT.unpack(self._event)
        done(None if result == 0 else OSError(-result, os.strerror(-result)))

    def close(self) -> None:
        self._loop.remove_reader(self._wake)
        os.close(self._wake)
        if self._done is None:  # else an answer is still to come there, and nobody else may have it
            _idle_contexts.append(self._context)


def syncs_of(lane: OffloadLane) -> Syncs:
    """The kernel's, where it has them."""
    try:
        return KernelSyncs(lane)
    except OSError:
        return LaneSyncs(lane)
