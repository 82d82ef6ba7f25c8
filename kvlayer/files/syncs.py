"""Writes that are made durable beside the loop, which is told.

Linux writes and syncs beside the process that asks (io_submit(2)): a write of whole blocks past the
system's cache (O_DIRECT, RWF_DSYNC) goes to the disk at once, and the kernel wakes the loop by an
eventfd when the disk has answered. So nothing of a commit's way to the disk needs a thread of
Python, which costs two wake-ups and waits for the interpreter's lock each time that it returns from
the system, and a step that has more to do does it while the disk works. Where the kernel has no
such calls, no room for them, or a file system that knows its cache alone, the system's cache is
written and a lane's thread syncs it, in a tenth of a millisecond more.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
from collections.abc import Callable
from functools import partial
from typing import Protocol

from msgspec import Struct

from ..process.offload import OffloadLane

Done = Callable[[BaseException | None], None]
"""Told, once, how a write has ended: by None, or by an error, and then nothing is known of it."""

BLOCK_BYTES = 4096
"""The unit of direct writes, in offset and length: no disk in use has longer blocks."""

DIRECT_BYTES_MAX = 128 * 1024
"""Longer writes go by the system's cache."""

_CALLS = {"x86_64": (206, 208, 209), "aarch64": (0, 4, 2)}
"""Numbers of io_setup, io_getevents and io_submit, which the C library does not wrap."""

_REQUEST = struct.Struct("<QIIHhIQQqQII")
"""struct iocb of linux/aio_abi.h, for a little-endian machine."""

_EVENT = struct.Struct("<QQqq")
_PWRITE, _FLAG_EVENTFD, _RWF_DSYNC = 1, 1, 2
_DIRECT = getattr(os, "O_DIRECT", 0)
_ZERO, _ONE = ctypes.c_long(0), ctypes.c_long(1)
_NONE = (-1, -1, -1)

_idle_contexts: list[ctypes.c_ulong] = []
"""Contexts of logs that were closed, for those that are opened: to destroy one takes 35 ms."""


class Syncable(Protocol):
    """An open file that is written at offsets. `descriptor` is the system's; None where the file is
    no file of the system."""

    @property
    def descriptor(self) -> int | None: ...
    def pwrite(self, data: bytes, offset: int) -> None: ...
    def fdatasync(self) -> None: ...


class Syncs(Protocol):
    """Durable writes of one log, one at a time.

    The log's files are written from their beginning to their end, and hold zeros behind it.
    """

    def write(
        self, file: Syncable, data: bytes, offset: int, done: Done, *, put_off: bool = False
    ) -> None:
        """Writes `data`, makes it durable, and calls `done` in a later step, or in `finish`.

        With `put_off`, what would hold up the rest of this step is left to `finish`, to `hasten`,
        or to the next turn of the loop, whichever comes first. Raises OSError where the write has
        failed already: then `done` is not called.
        """
        ...

    def hasten(self) -> None:
        """Has what was put off carried out beside the loop."""
        ...

    def finish(self) -> None:
        """Waits for the write under way, and calls its `done`. Does nothing where a thread is at
        it, or a signal comes first: `done` is called in a later step then."""
        ...

    def close(self) -> None:
        """Nobody asks any more, nor hears of what is still under way; a direct write has ended."""
        ...


class LaneSyncs:
    """Writes into the system's cache, which a lane's thread syncs."""

    def __init__(self, lane: OffloadLane) -> None:
        self._lane = lane
        self._put_off: tuple[Syncable, Done] | None = None

    def write(
        self, file: Syncable, data: bytes, offset: int, done: Done, *, put_off: bool = False
    ) -> None:
        assert self._put_off is None, "one write at a time"
        file.pwrite(data, offset)
        self._put_off = file, done
        if put_off:
            asyncio.get_running_loop().call_soon(self.hasten)
        else:
            self.hasten()

    def hasten(self) -> None:
        if self._put_off is not None:
            (file, done), self._put_off = self._put_off, None
            self._lane.run(file.fdatasync).add_done_callback(
                lambda synced: done(synced.exception())
            )

    def finish(self) -> None:
        if self._put_off is not None:
            (file, done), self._put_off = self._put_off, None
            try:
                file.fdatasync()
            except OSError as error:
                done(error)
            else:
                done(None)

    def close(self) -> None:
        """Does nothing: the lane is its owner's."""


class _Write(Struct):
    """A write for the kernel, not yet or already under way."""

    file: Syncable
    data: bytes
    offset: int
    done: Done
    end: int
    """Of the data in the buffer, which begins with what is before them in their first block."""


class KernelSyncs:
    """Writes past the system's cache. What the kernel does not take goes to the lane.

    The buffer holds the block that the last write has ended in, for the next one begins there.
    """

    def __init__(self, lane: OffloadLane) -> None:
        """Raises OSError where the kernel has no room or no such calls."""
        self._others = LaneSyncs(lane)
        self._loop = asyncio.get_running_loop()
        self._under_way: _Write | None = None
        setup, self._get, self._submit = map(ctypes.c_long, _CALLS.get(platform.machine(), _NONE))
        # These calls do not block, and the interpreter's lock is kept over them; `_wait` may.
        call = self._call = ctypes.PyDLL(None, use_errno=True).syscall
        self._wait = ctypes.CDLL(None, use_errno=True).syscall
        try:
            self._context = _idle_contexts.pop()
        except IndexError:
            self._context = ctypes.c_ulong(0)
        if not self._context and call(setup, _ONE, ctypes.byref(self._context)) != 0:
            raise OSError(ctypes.get_errno(), "io_setup")
        self._buffer = mmap.mmap(-1, DIRECT_BYTES_MAX)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))
        self._held: tuple[Syncable, int] | None = None
        """A file, and the offset up to which the buffer holds that offset's block."""
        self._direct = _DIRECT != 0
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._request = ctypes.create_string_buffer(_REQUEST.size)
        self._requests = (ctypes.c_void_p * 1)(ctypes.addressof(self._request))
        self._event = ctypes.create_string_buffer(_EVENT.size)
        self._loop.add_reader(self._wake, self._woken)

    def write(
        self, file: Syncable, data: bytes, offset: int, done: Done, *, put_off: bool = False
    ) -> None:
        assert self._under_way is None, "one write at a time"
        head = offset % BLOCK_BYTES
        asked = _Write(file, data, offset, done, head + len(data))
        if not self._direct or not self._submitted(asked, head):
            self._others.write(file, data, offset, done, put_off=put_off)

    def _submitted(self, asked: _Write, head: int) -> bool:
        """Gives the kernel the write, in whole blocks; says whether it has taken it."""
        file, end, buffer = asked.file, asked.end, self._buffer
        descriptor, size = file.descriptor, end + -end % BLOCK_BYTES
        if descriptor is None or size > DIRECT_BYTES_MAX:
            return False
        start = asked.offset - head
        if head and self._held != (file, asked.offset):
            buffer[:head] = os.pread(descriptor, head, start)
        self._held = None
        buffer[head:end] = asked.data
        buffer[end:size] = bytes(size - end)
        address, wake = self._address, self._wake
        form = (0, 0, _RWF_DSYNC, _PWRITE, 0, descriptor, address, size, start, 0)
        _REQUEST.pack_into(self._request, 0, *form, _FLAG_EVENTFD, wake)
        try:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, _DIRECT)
        except OSError:
            return False
        try:
            taken: int = self._call(self._submit, self._context, _ONE, self._requests)
        finally:
            fcntl.fcntl(descriptor, fcntl.F_SETFL, 0)
        if taken == 1:
            self._under_way = asked
        return taken == 1

    def hasten(self) -> None:
        self._others.hasten()

    def finish(self) -> None:
        if self._under_way is None:
            self._others.finish()
        elif self._wait(self._get, self._context, _ONE, _ONE, self._event, None) == 1:
            self._hush()
            self._answered()

    def _woken(self) -> None:
        self._hush()
        if self._call(self._get, self._context, _ZERO, _ONE, self._event, None) == 1:
            self._answered()

    def _hush(self) -> None:
        """The loop need not be woken any more. The kernel wakes it behind its answer: who takes the
        answer may come before that, and then the loop is woken for nothing."""
        try:
            os.eventfd_read(self._wake)
        except BlockingIOError:
            pass

    def _answered(self) -> None:
        """The kernel has told of the write, by `_event`."""
        asked, self._under_way = self._under_way, None
        assert asked is not None
        (_, _, result, _) = _EVENT.unpack(self._event)
        end = asked.end
        if result == end + -end % BLOCK_BYTES:
            kept = end % BLOCK_BYTES
            self._buffer[:kept] = self._buffer[end - kept : end]
            self._held = asked.file, asked.offset + len(asked.data)
            asked.done(None)
        elif result < 0 and result != -errno.EINVAL:
            asked.done(OSError(-result, os.strerror(-result)))
        else:
            # The file system writes no such blocks past its cache, or a limit ends within them:
            # the system tells which, by an error, when it is asked for the rest.
            self._direct = result >= 0
            self._again(asked)

    def _again(self, asked: _Write) -> None:
        """Writes by the lane what was not written whole."""
        try:
            self._others.write(asked.file, asked.data, asked.offset, asked.done)
        except OSError as error:
            self._loop.call_soon(partial(asked.done, error))

    def close(self) -> None:
        self._loop.remove_reader(self._wake)
        os.close(self._wake)
        # A write that lands later would land in what the next to open the file has found there.
        ended = self._under_way is None or (
            self._wait(self._get, self._context, _ONE, _ONE, self._event, None) == 1
        )
        if ended:
            _idle_contexts.append(self._context)


def syncs_of(lane: OffloadLane) -> Syncs:
    """The kernel's, where it has them."""
    try:
        return KernelSyncs(lane)
    except OSError:
        return LaneSyncs(lane)
