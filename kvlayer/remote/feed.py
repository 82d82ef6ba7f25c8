"""A feed of spans of a distant store.

The server follows its ranges and sends what comes; this end reads on only while its buffer has
room, so that a consumer that is slow fills the buffer, then the channel's, then the feed's at the
server, which ends it in the way that slow consumers are ended. A lost connection is a restart: the
feed goes on from its frontier, and may bring again what lies above it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import chain

from ..clock import Timestamp
from ..errors import FeedEnd, KVError, RangeFeedEnded, StoreUnreachable
from ..events import Checkpoint, DeleteRange, Event, SteadyState, ValueBatch
from ..frontier import Frontier
from ..keys import KEYSPACE_LENGTH, RAW_KIND
from ..span import Span
from .connection import Connection
from .messages import (
    Follow,
    WireCheckpoint,
    WireDeleteRange,
    WireEvent,
    WireSteadyState,
    WireValues,
    spans_of,
    wire,
)

BUFFER_MESSAGES_MAX = 16
"""Messages read ahead; each holds what the server's feed had at one moment."""

RESTART_SECONDS = 0.1

TOGETHER_MAX = 500
"""Batches that become one, and rows of one that still joins others."""


class RemoteFeed:
    """Implements `access.Feed`."""

    def __init__(
        self,
        connection: Connection,
        starts: Iterable[tuple[Span, Timestamp]],
        *,
        with_previous: bool,
        checkpoint_seconds: float,
        omitted_origins: frozenset[int] = frozenset(),
    ) -> None:
        entries = list(starts)
        if not entries:
            raise ValueError("a span feed needs a span")
        self._connection = connection
        self._with_previous = with_previous
        self._omitted_origins = sorted(omitted_origins)
        self._checkpoint_seconds = checkpoint_seconds  # that the server leaves between them
        self._spacing = 0.0  # and this end, by holding them back
        self._told_at = float("-inf")
        self._held: dict[tuple[Span, ...], Checkpoint] = {}
        self._frontier = Frontier.from_entries(entries)
        self._received = Frontier.from_entries(entries)
        self._unsteady = [span for span, _ in entries]
        self._buffer: asyncio.Queue[list[Event] | Exception]
        self._buffer = asyncio.Queue(BUFFER_MESSAGES_MAX)
        self._closed = False
        self._task = asyncio.create_task(self._pump(entries), name="remote feed")

    @property
    def frontier(self) -> Frontier:
        return self._frontier

    @property
    def behind(self) -> bool:
        return bool(self._unsteady)

    async def next(self) -> list[Event]:
        """Waits until there is something, and returns all there is. See `SpanFeed.next`."""
        if self._closed:
            raise RangeFeedEnded(FeedEnd.RANGEFEED_CLOSED, "by its consumer")
        while not (events := self._due(await self._buffer.get())):
            pass
        for event in events:
            if isinstance(event, Checkpoint):
                for span in event.spans:
                    self._frontier.forward(span, event.resolved)
        return events

    def space_checkpoints(self, seconds: float) -> None:
        """See `SpanFeed.space_checkpoints`. The messages come as they did."""
        self._spacing = seconds

    def _due(self, taken: list[Event] | Exception) -> list[Event]:
        """The events to hand out now: none, where there are checkpoints alone, too soon.

        Of the checkpoints held back for the same spans the last says it all.
        """
        if isinstance(taken, Exception):
            self._buffer.put_nowait(taken)  # it is final
            raise taken
        now = asyncio.get_running_loop().time()
        checkpoints = [event for event in taken if isinstance(event, Checkpoint)]
        if len(checkpoints) == len(taken):
            self._held |= {checkpoint.spans: checkpoint for checkpoint in checkpoints}
            if now - self._told_at < self._spacing:
                return []
            taken = []
        self._told_at = now
        held, self._held = self._held, {}
        return [*held.values(), *taken]

    def close(self) -> None:
        self._closed = True
        self._task.cancel()

    async def _pump(self, entries: list[tuple[Span, Timestamp]]) -> None:
        """Reads one stream after another, each from where everything received was resolved."""
        starts = entries
        while True:
            try:
                await self._follow(starts)
            except StoreUnreachable:
                pass
            except RangeFeedEnded as ended:
                if ended.reason is FeedEnd.RANGEFEED_CLOSED and self._closed:
                    return
            except KVError as error:
                await self._buffer.put(error)
                return
            starts = list(self._received.entries())
            await asyncio.sleep(RESTART_SECONDS)

    async def _follow(self, starts: list[tuple[Span, Timestamp]]) -> None:
        question = Follow(
            connection=await self._connection.ready(),
            starts=[(span.start, span.end, at) for span, at in starts],
            with_previous=self._with_previous,
            checkpoint_seconds=self._checkpoint_seconds,
            omitted_origins=self._omitted_origins,
        )
        messages = self._connection.stream("feed", question, list[WireEvent])
        async with aclosing(messages):
            async for message in messages:
                events = [event for sent in message for event in self._taken(sent)]
                if events:
                    await self._buffer.put(events)

    def _taken(self, sent: WireEvent) -> list[Event]:
        event = event_of(sent)
        match event:
            case Checkpoint(spans=spans, resolved=resolved):
                for span in spans:
                    self._received.forward(span, resolved)
            case SteadyState():
                # The server's feed is steady as a whole, and after a restart is so once more.
                steady, self._unsteady = self._unsteady, []
                return [SteadyState(span) for span in steady]
        return [event]


def event_of(sent: WireEvent) -> Event:
    match sent:
        case WireValues():
            return ValueBatch(
                keys=sent.keys,
                values=sent.values,
                timestamps=sent.timestamps,
                previous=sent.previous,
                commit_called_ns=sent.commit_called_ns,
                appended_ns=sent.appended_ns,
                durable_ns=sent.durable_ns,
            )
        case WireDeleteRange():
            return DeleteRange(Span(*sent.span), sent.timestamp)
        case WireCheckpoint():
            return Checkpoint(spans_of(sent.spans), sent.resolved)
        case WireSteadyState():
            return SteadyState(Span(*sent.span))


def sent_of(event: Event) -> WireEvent:
    match event:
        case ValueBatch():
            return WireValues(
                keys=list(event.keys),
                values=list(event.values),
                timestamps=list(event.timestamps),
                previous=None if event.previous is None else list(event.previous),
                commit_called_ns=event.commit_called_ns,
                appended_ns=event.appended_ns,
                durable_ns=event.durable_ns,
            )
        case DeleteRange():
            return WireDeleteRange(wire(event.span), event.timestamp)
        case Checkpoint():
            return WireCheckpoint([wire(span) for span in event.spans], event.resolved)
        case SteadyState():
            return WireSteadyState(wire(event.span))


def together(events: Iterable[Event]) -> Iterator[Event]:
    """The same events, with neighbouring batches of a raw keyspace as one.

    Commits there are many and small, and a batch costs both processes what ten rows do. Its stage
    times are those of the oldest commit, which waited longest.
    """
    run: list[ValueBatch] = []
    for event in events:
        if run and not (isinstance(event, ValueBatch) and _joins(event, run)):
            yield _one(run)
            run = []
        if isinstance(event, ValueBatch) and event.keys[0].startswith(RAW_KIND):
            run.append(event)
        else:
            yield event
    if run:
        yield _one(run)


def _joins(batch: ValueBatch, run: Sequence[ValueBatch]) -> bool:
    first = run[0]
    return (
        batch.keys[0][:KEYSPACE_LENGTH] == first.keys[0][:KEYSPACE_LENGTH]
        and (batch.previous is None) == (first.previous is None)
        and len(batch) + len(run) <= TOGETHER_MAX
    )


def _one(run: Sequence[ValueBatch]) -> ValueBatch:
    if len(run) == 1:
        return run[0]
    previous = [each.previous for each in run if each.previous is not None]
    return replace(
        run[0],
        keys=list(chain.from_iterable(each.keys for each in run)),
        values=list(chain.from_iterable(each.values for each in run)),
        timestamps=list(chain.from_iterable(each.timestamps for each in run)),
        previous=list(chain.from_iterable(previous)) if previous else None,
    )
