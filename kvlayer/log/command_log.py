"""The command log: append now, durable soon, and everybody told when."""

from __future__ import annotations

import asyncio
import errno
import heapq
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

from ..errors import StoreClosed, StoreFull
from ..files.disk import ZEROS, Disk, DiskFile
from ..files.spare_descriptors import NO_DESCRIPTORS
from ..process.offload import Offload
from .errors import LogTruncated
from .group import ENTRY_OVERHEAD_BYTES, HEADER_BYTES, encode_group
from .recovery import Recovered, recover
from .retention import Retention, Retentions
from .segment import SEGMENT_BYTES, Segment, prepare_segment

GROUP_BYTES_MAX = 1024 * 1024
"""Joining and summing a group is a slice of the loop: this one takes half a millisecond. An entry
above it has a group of its own."""

STEP_BYTES_MAX = 64 * 1024
"""A group of this size is written by the loop itself: a copy for the system, which takes less than
handing it over."""

TOLD_MAX = 32
"""Waiters that are told in one step: each may write a client's answer, of some 50 µs."""

STEP_SYNC_SECONDS = 0.001
"""A sync in a step of the loop may take so long. After one that took `n` times that, the next `n`
groups are synced beside the loop: a disk that is slow holds up a small part of the steps."""

LINGER_SECONDS = 0.01
"""How long an entry that nobody waits for may stay in the buffer, to be taken along."""

LINGER_BYTES_MAX = 64 * 1024
"""A buffer of this size is written, waited for or not: a load is to keep the disk busy."""

ROOM_RETRY_SECONDS = 0.25
"""How often a log that has entries and no room asks the disk again."""

_OUT_OF_ROOM = (errno.ENOSPC, errno.EDQUOT, *NO_DESCRIPTORS)
"""What a new segment may lack and get later: space, or a descriptor to write it by."""

FailureListener = Callable[[BaseException], None]
RoomListener = Callable[[OSError | None], None]
Told = Callable[[StoreClosed | None], None]
"""Told that an entry is durable, by None, or that it may never be."""


class CommandLog:
    """The log of one store: entries with ascending indexes, durable in groups.

    `append` buffers and never blocks. All that is buffered is written as one group and synced, one
    group at a time; what is appended meanwhile gathers for the next. So the group grows with the
    load and one commit alone waits for one sync. A short group is written in the step in which
    somebody wants it, once the one before is durable, beside the loop; the flusher, a task, sees to
    all that takes more: long groups, new segments, the end.

    Where one client is `alone`, nobody but it waits for the loop: its commit's write is *put off*,
    and waited for at the end of its step (`settle`), which costs no wake-up. Whoever else waits,
    and the next turn of the loop, has a write that was put off carried out beside the loop.

    Entries that are not *urgent* linger until an urgent one, a waiter or `LINGER_SECONDS` takes
    them along: a transaction's intents cost it no syncs of their own, which its commit would have
    to queue behind.

    *last index* is the last entry appended; *durable index* is the last of which a crash cannot
    rob us, and all below it are as safe. A failed write or sync ends the log: nothing is known of
    those bytes afterwards, the entries are already applied to the engine, and so the process must
    end and recover. It is never tried again.

    Space is taken before it is needed: a segment's zeros are on the disk before its first entry,
    and when the last half of it is being filled, the next one is prepared. When the disk has no
    room for that, `append` refuses what does not fit, before the command is applied; what was
    taken while that was not yet known waits until there is room. So no write of entries ever finds
    the disk full.
    """

    def __init__(
        self,
        disk: Disk,
        offload: Offload,
        recovered: Recovered,
        *,
        segment_bytes: int,
        on_failure: FailureListener,
    ) -> None:
        self._disk = disk
        self._flush_lane = offload.lane("log")
        self._syncs = disk.syncs(self._flush_lane)
        self._file_lane = offload.lane("log-files")
        self._segment_bytes = segment_bytes
        self._group_bytes_max = min(GROUP_BYTES_MAX, segment_bytes)
        self._on_failure = on_failure
        self.notice = recovered.notice
        self.last_index = recovered.last_index
        self.durable_index = recovered.last_index
        self._segments = recovered.segments
        self._file = recovered.active
        self._chain_index = recovered.previous_index
        self._taken_index = recovered.last_index
        """The last entry that left the buffer for a group."""
        self._wanted_index = recovered.last_index
        """The last entry that somebody waits for, or that has lingered long enough."""
        self._lingering: asyncio.TimerHandle | None = None
        self._in_flight_bytes = 0
        """Of the group that is being made durable; zero where there is none."""
        self._in_flight_index = 0
        """The first entry of that group."""
        self.alone = False
        """Whether all that is appended comes from one client, which waits for each answer."""
        self._put_off = False
        """Whether the group under way may be waited for in the step that began it."""
        self._syncs_beside = 0
        """Groups that are to be durable beside the loop, whoever is alone: the disk was slow."""
        self._buffer: list[bytes] = []
        self._buffered_bytes = HEADER_BYTES
        """The size of the buffer as one group."""
        self._next_file: DiskFile | None = None
        self._preparing: asyncio.Task[None] | None = None
        self.full: OSError | None = None
        """Why the next segment cannot be prepared, while the disk has no room for it: what does not
        fit into the last one is refused."""
        self._broken: BaseException | None = None
        self._ended: str | None = None
        """The error for which appends are refused for good, or None."""
        self._retentions = Retentions()
        self._wake = asyncio.Event()
        self._waiters: list[tuple[int, int, Told]] = []
        self._waiter_numbers = count()
        self._listeners: list[Callable[[int], None]] = []
        self._room_listeners: list[RoomListener] = []
        self._flusher = asyncio.get_running_loop().create_task(self._flush_until_closed())

    @classmethod
    async def open(
        cls,
        disk: Disk,
        offload: Offload,
        *,
        flushed_index: int,
        on_failure: FailureListener,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> CommandLog:
        """Recovers the log and opens it for appending.

        `flushed_index` is the applied index that the engine came back with. `on_failure` is called
        once, if the log can no longer write. Raises LogCorrupt or OSError.
        """
        call = partial(recover, disk, flushed_index=flushed_index, segment_bytes=segment_bytes)
        recovered = await offload.run(call)
        return cls(disk, offload, recovered, segment_bytes=segment_bytes, on_failure=on_failure)

    # Writing

    def append(self, payload: bytes, *, urgent: bool = True) -> int:
        """Buffers an entry and returns its index. Not `urgent`, it may linger until it is.

        Raises StoreClosed once the log has ended, StoreFull while the disk has no room; the entry
        is then not in the log and never will be.
        """
        if self._ended is not None:
            raise StoreClosed(self._ended)
        size = self._buffered_bytes + ENTRY_OVERHEAD_BYTES + len(payload)
        if self.full is not None:
            self._check_room(size)
        self._buffered_bytes = size
        self._buffer.append(payload)
        self.last_index = index = self.last_index + 1
        if urgent or size > LINGER_BYTES_MAX:
            self._want(index, put_off=self.alone)
        elif self._lingering is None:
            loop = asyncio.get_running_loop()
            self._lingering = loop.call_later(LINGER_SECONDS, self._linger_no_more)
        return index

    def _linger_no_more(self) -> None:
        self._lingering = None
        self._want(self.last_index)

    def _want(self, index: int, *, put_off: bool = False) -> None:
        if index > self._wanted_index:
            self._wanted_index = index
            if index <= self._taken_index or self._in_flight_bytes:
                return
            if not self._begin_group(put_off=put_off):
                self._wake.set()

    def check_append(self, payload: bytes) -> None:
        """Raises what `append` of the same payload would raise in this step; else it succeeds.

        For who must apply a command first, because the engine may refuse it (EngineStall).
        """
        if self._ended is not None:
            raise StoreClosed(self._ended)
        if self.full is not None:
            self._check_room(self._buffered_bytes + ENTRY_OVERHEAD_BYTES + len(payload))

    async def wait_durable(self, index: int) -> None:
        """Returns when the entry is durable. Raises StoreClosed if it may never be."""
        if index > self.durable_index:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.when_durable(index, partial(_settle, future))
            try:
                await future
            finally:
                future.cancel()  # for who was left at this wait: nobody asks for what it would hold

    def when_durable(self, index: int, told: Told) -> None:
        """Calls `told` in the step in which the entry becomes durable, or is known to be none that
        will; in this one where that is so already."""
        assert index <= self.last_index, (index, self.last_index)
        if index <= self.durable_index:
            told(None)
        elif self._ended is not None and self._flusher.done():
            told(StoreClosed(self._ended))
        else:
            self._want(index)
            heapq.heappush(self._waiters, (index, next(self._waiter_numbers), told))
            if self._put_off:
                self._put_off = False
                self._syncs.hasten()

    def settle(self, index: int, told: Told) -> None:
        """As `when_durable`, at the end of a step: a write that was put off is waited for in it.

        HAZARD: all who wait are told in this step, and the listeners: the caller has nothing more
        to do in it.
        """
        put_off, self._put_off = self._put_off, False
        self.when_durable(index, told)
        if put_off:
            time = asyncio.get_running_loop().time
            began = time()
            self._syncs.finish()
            self._syncs_beside = int((time() - began) / STEP_SYNC_SECONDS)

    def on_durable(self, listener: Callable[[int], None]) -> None:
        """Calls `listener` with the durable index each time it moves, in that step: before a task
        that waits goes on, and behind the calls of `when_durable`, so that a client's answer is on
        its way meanwhile."""
        self._listeners.append(listener)

    def on_room(self, listener: RoomListener) -> None:
        """Calls `listener` with the disk's error when it has no room for another segment, and with
        None when it has room again."""
        self._room_listeners.append(listener)

    async def close(self) -> None:
        """Writes what is buffered, and stops. Closing twice is fine."""
        if self._ended is None:
            self._ended = "the store is closed"
        if self._lingering is not None:
            self._lingering.cancel()
        self._wanted_index = self.last_index
        self._wake.set()
        await asyncio.wait([self._flusher])
        if self._preparing is not None:
            await asyncio.wait([self._preparing])
        self._close_files()

    # Reading

    def replay(self, after: int) -> Iterator[tuple[int, bytes]]:
        """The retained durable entries above `after`; at opening, what the engine lacks."""
        return self._entries(after + 1, self.durable_index)

    def read(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The durable entries in `[first, last]`. Raises LogTruncated where they are deleted.

        Reads pieces of 64 KiB as it is asked for more, from files that were written just now.
        """
        if first < self.first_retained_index:
            raise LogTruncated(
                f"log entry {first} is deleted; the oldest kept is {self.first_retained_index}"
            )
        return self._entries(first, last)

    def _entries(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        for segment in list(self._segments):
            if segment.last_index >= first and segment.first_index <= last:
                yield from segment.entries(self._disk, first, last)

    @property
    def first_retained_index(self) -> int:
        """The first entry that can be read; above the durable index where there is none."""
        return self._segments[0].first_index or self.durable_index + 1

    def retain(self, first: int) -> Retention:
        """Keeps the entries from `first` on for somebody who is going to `read` them."""
        assert first >= self.first_retained_index, (first, self.first_retained_index)
        return self._retentions.hold(first)

    async def truncate(self, upto: int, *, retained_bytes_max: int = 0) -> None:
        """Deletes the segments that hold nothing above `upto`, never the last that holds anything.

        The caller promises that the engine's flush covers `upto`. What is retained stays, up to
        `retained_bytes_max` of it; beyond that the oldest retentions are revoked.
        """
        assert upto <= self.durable_index, (upto, self.durable_index)
        while len(self._segments) > 1 and self._segments[1].last_index:
            oldest = self._segments[0]
            if oldest.last_index > upto:
                return
            if self._retentions.needs(oldest.last_index):
                covered = [held.end for held in self._segments[:-1] if held.last_index <= upto]
                if sum(covered) <= retained_bytes_max:
                    return
                self._retentions.revoke(oldest.last_index)
            del self._segments[0]
            await self._file_lane.run(partial(self._disk.remove, oldest.name))
            # Each removal is durable before the next: a crash must not leave a hole among them.
            await self._sync_names()

    async def _sync_names(self) -> None:
        """Makes a removal durable, as soon as there is a descriptor for it."""
        while True:
            try:
                await self._file_lane.run(self._disk.sync_folder)
            except OSError as error:
                if error.errno not in NO_DESCRIPTORS:
                    raise
                if self._ended is not None:
                    raise StoreClosed(self._ended) from error
            else:
                return
            await asyncio.sleep(ROOM_RETRY_SECONDS)

    # The flusher

    async def _flush_until_closed(self) -> None:
        try:
            while True:
                if self._broken is not None:
                    raise self._broken
                if not self._in_flight_bytes:
                    if self._taken_index < self._wanted_index:
                        if not self._begin_group():
                            await self._flush_group()
                        continue
                    if self._ended is not None:
                        return
                self._wake.clear()
                await self._wake.wait()
        except asyncio.CancelledError:
            self._end(StoreClosed("the store was stopped"), "the store was stopped")
            raise
        except OSError as error:
            self._end(error, f"the log has failed: {error}")
            self._on_failure(error)
        except BaseException as error:  # a bug here must not leave writers waiting for ever
            self._end(error, f"the log's flusher failed: {error!r}")
            self._on_failure(error)
            raise

    def _begin_group(self, *, put_off: bool = False) -> bool:
        """Has what is buffered written and made durable, or puts a part of that off. False where
        that takes more than a step.

        HAZARD: it is called by `append`, in the middle of a step that has more to do: nobody is
        told anything here, not even of a failure.
        """
        size, active = self._buffered_bytes, self._segments[-1]
        if size > STEP_BYTES_MAX or active.end + size > active.capacity:
            return False
        data, last_index = self._encode_group(*self._take_group())
        done = partial(self._synced, last_index)
        put_off = put_off and not self._syncs_beside
        try:
            self._syncs.write(self._file, data, active.end, done, put_off=put_off)
        except OSError as error:
            self._broken = error
            self._wake.set()
            return True
        self._put_off = put_off
        if self._syncs_beside:
            self._syncs_beside -= 1
        return True

    def _synced(self, last_index: int, error: BaseException | None) -> None:
        """The short group that ends with `last_index` is durable, or will never be."""
        self._put_off = False
        if self._flusher.done():
            return  # which has ended the log
        if error is not None:
            self._broken = error
        else:
            self._group_durable(last_index)
            if self._in_flight_bytes:
                return  # who was told has begun the next
            if self._taken_index < self._wanted_index:
                if self._begin_group():
                    return
            elif self._ended is None:
                return
        self._wake.set()

    async def _flush_group(self) -> None:
        """Makes the oldest entries of the buffer durable, as many as one group takes."""
        payloads, size = self._take_group()
        self._in_flight_bytes = size
        active = self._segments[-1]
        # An entry larger than a segment has a fresh one, which is made longer for it.
        if active.end > 0 and active.end + size > active.capacity:
            active = await self._roll()
        if active.end + size > active.capacity:
            await self._lengthen(active, active.end + size)
        data, last_index = self._encode_group(payloads, size)
        await self._flush_lane.run(partial(_write_and_sync, self._file, data, active.end))
        self._group_durable(last_index)

    def _encode_group(self, payloads: list[bytes], size: int) -> tuple[bytes, int]:
        """The bytes of the group that is under way from now on, and its last index."""
        self._in_flight_bytes = size
        active = self._segments[-1]
        self._in_flight_index = first_index = self._taken_index + 1
        self._taken_index += len(payloads)
        data = encode_group(
            payloads,
            segment_id=active.id,
            first_index=first_index,
            previous_index=self._chain_index,
            durable_offset=active.end,
        )
        assert len(data) == size, (len(data), size)
        return data, self._taken_index

    def _group_durable(self, last_index: int) -> None:
        """The group under way is durable."""
        active = self._segments[-1]
        end = active.end + self._in_flight_bytes
        active.extend(first_index=self._in_flight_index, last_index=last_index, end=end)
        self._chain_index = last_index
        self._in_flight_bytes = 0
        self._move_durable(last_index)
        if active.end > active.capacity // 2:
            self._start_preparing()

    def _take_group(self) -> tuple[list[bytes], int]:
        """Takes entries off the buffer, and the size of their group."""
        payloads, size = self._buffer, self._buffered_bytes
        if size <= self._group_bytes_max:
            self._buffer, self._buffered_bytes = [], HEADER_BYTES
            return payloads, size
        taken, size = 0, HEADER_BYTES
        for payload in payloads:
            grown = size + ENTRY_OVERHEAD_BYTES + len(payload)
            if taken and grown > self._group_bytes_max:
                break
            taken, size = taken + 1, grown
        self._buffer = payloads[taken:]
        self._buffered_bytes -= size - HEADER_BYTES
        return payloads[:taken], size

    def _move_durable(self, index: int) -> None:
        assert self.durable_index < index <= self.last_index, (self.durable_index, index)
        self.durable_index = index
        self._tell_waiters()
        for listener in self._listeners:
            listener(index)

    def _tell_waiters(self) -> None:
        """Tells those who wait for what is durable, so many a step: to each a client's answer may
        be due."""
        waiters = self._waiters
        for _ in range(TOLD_MAX):
            if not waiters or waiters[0][0] > self.durable_index:
                return
            _tell(heapq.heappop(waiters)[2], None)
        asyncio.get_running_loop().call_soon(self._tell_waiters)

    def _end(self, error: BaseException, why: str) -> None:
        """Refuses everything from now on."""
        self._ended = why
        waiters, self._waiters = self._waiters, []
        for index, _, told in waiters:
            if index <= self.durable_index:
                _tell(told, None)
                continue
            refusal = StoreClosed(why)
            refusal.__cause__ = error
            _tell(told, refusal)

    # Segments ahead

    def _check_room(self, size: int) -> None:
        """While no segment can be prepared: raises StoreFull unless a group of `size` fits."""
        active = self._segments[-1]
        if active.end + self._in_flight_bytes + size > active.capacity:
            raise StoreFull(f"the log has no room for more: {self.full}") from self.full

    def _note_room(self, full: OSError | None) -> None:
        changed = (full is None) != (self.full is None)
        self.full = full
        if changed:
            for listener in self._room_listeners:
                listener(full)

    def _start_preparing(self) -> None:
        if self._next_file is None and self._preparing is None:
            self._preparing = asyncio.get_running_loop().create_task(self._prepare())

    async def _prepare(self) -> None:
        """Makes the next segment; asks again while the disk is full, until the log is closed."""
        call = partial(prepare_segment, self._disk, self._segments[-1].id + 1, self._segment_bytes)
        try:
            while self._ended is None or self.full is None:
                try:
                    self._next_file = await self._file_lane.run(call)
                    self._note_room(None)
                    return
                except OSError as error:
                    if error.errno not in _OUT_OF_ROOM:
                        raise
                    self._note_room(error)
                await asyncio.sleep(ROOM_RETRY_SECONDS)
        except OSError as error:
            self._broken = error
            self._wake.set()
        finally:
            self._preparing = None

    async def _roll(self) -> Segment:
        """Goes on in the next segment. Raises OSError when there will be none."""
        self._start_preparing()
        if self._preparing is not None:
            await asyncio.wait([self._preparing])
        if self._next_file is None:
            why = self._broken or self.full
            assert why is not None, "preparing ends with a file or with a reason"
            raise why
        self._file.close()
        self._file, self._next_file = self._next_file, None
        segment = Segment(id=self._segments[-1].id + 1, capacity=self._segment_bytes)
        self._segments.append(segment)
        return segment

    async def _lengthen(self, segment: Segment, size: int) -> None:
        """Takes space for an entry larger than a segment, before it is written: a write that finds
        the disk full would end the log. Waits for room as `_prepare` does."""
        call = partial(_take_space, self._file, segment.capacity, size)
        while True:
            try:
                await self._file_lane.run(call)
            except OSError as error:
                if error.errno not in _OUT_OF_ROOM or self._ended is not None:
                    raise
                self._note_room(error)
            else:
                segment.capacity = size
                if self._preparing is None:
                    self._note_room(None)
                return
            await asyncio.sleep(ROOM_RETRY_SECONDS)

    def _close_files(self) -> None:
        self._file.close()
        if self._next_file is not None:
            self._next_file.close()
        self._syncs.close()


def _tell(told: Told, refusal: StoreClosed | None) -> None:
    """One who fails at hearing it keeps nobody else from it."""
    try:
        told(refusal)
    except Exception as error:
        loop = asyncio.get_running_loop()
        loop.call_exception_handler({"message": f"{told!r} failed", "exception": error})


def _settle(waiting: asyncio.Future[None], refusal: StoreClosed | None) -> None:
    if waiting.done():
        return
    if refusal is None:
        waiting.set_result(None)
    else:
        waiting.set_exception(refusal)


def _write_and_sync(file: DiskFile, data: bytes, offset: int) -> None:
    file.pwrite(data, offset)
    file.fdatasync()


def _take_space(file: DiskFile, start: int, end: int) -> None:
    for offset in range(start, end, len(ZEROS)):
        file.pwrite(ZEROS[: end - offset], offset)
