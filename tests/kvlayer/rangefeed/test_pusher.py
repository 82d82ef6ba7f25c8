"""Pushes: how a transaction that holds the resolved timestamp back is moved, or found out."""

from __future__ import annotations

import asyncio

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.errors import StoreClosed
from tailrace.kvlayer.rangefeed import PushOutcome, PushVerdict, RangeFeed
from tailrace.kvlayer.span import Span
from tests.harness.small_range import SmallRange, key, moment, resolved_in, write

X = b"x" * 16
WHOLE = Span.prefix(key(""))


def held_back(small: SmallRange) -> tuple[RangeFeed, Timestamp]:
    """A feed, and the timestamp of an intent that has held it back for longer than the age."""
    feed = small.feeds.register(WHOLE, ZERO)
    ts = small.clock.now()
    small.lay_intents(X, ts, key("a"))
    small.sync()
    small.wall.milliseconds = 4000
    return feed, ts


def test_old_transaction_is_pushed() -> None:
    async def run() -> None:
        small = SmallRange()
        feed, ts = held_back(small)
        small.verdicts[X] = PushOutcome(
            verdict=PushVerdict.MOVED, timestamp=moment(4000), index=small.applied_index
        )
        small.feeds.tick()
        assert resolved_in(feed.poll())[-1] == ts - 1
        await asyncio.sleep(0)
        small.advance(10)
        assert small.pushed == [X]
        assert resolved_in(feed.poll()) == [moment(4000) - 1]

    asyncio.run(run())


def test_verdict_waits_for_its_entries() -> None:
    """Aborted, says the push; but the range has entries that the feed has not seen."""

    async def run() -> None:
        small = SmallRange()
        feed, ts = held_back(small)
        small.propose(write(small.clock.now(), (key("b"), b"unseen")))
        small.verdicts[X] = PushOutcome(
            verdict=PushVerdict.ABORTED, timestamp=ZERO, index=small.applied_index
        )
        small.feeds.tick()
        await asyncio.sleep(0)
        small.advance(10)
        assert resolved_in(feed.poll())[-1] == ts - 1
        small.sync()
        small.advance(10)
        assert resolved_in(feed.poll())[-1] > moment(4000)

    asyncio.run(run())


def test_young_transaction_is_left_alone() -> None:
    async def run() -> None:
        small = SmallRange()
        small.feeds.register(WHOLE, ZERO)
        small.lay_intents(X, small.clock.now(), key("a"))
        small.sync()
        small.wall.milliseconds = 2000
        small.feeds.tick()
        await asyncio.sleep(0)
        assert small.pushed == []

    asyncio.run(run())


def test_failed_push_is_tried_again() -> None:
    async def run() -> None:
        small = SmallRange()
        feed, _ = held_back(small)
        small.push_error = StoreClosed("not now")
        small.feeds.tick()
        await asyncio.sleep(0)
        small.push_error = None
        small.verdicts[X] = PushOutcome(
            verdict=PushVerdict.ABORTED, timestamp=ZERO, index=small.applied_index
        )
        small.advance(1500)
        await asyncio.sleep(0)
        small.advance(10)
        assert small.pushed == [X, X]
        assert resolved_in(feed.poll())[-1] > moment(4000)

    asyncio.run(run())
