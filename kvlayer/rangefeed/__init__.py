"""Range feeds: what a range commits, as a stream of events.

What lives here: `RangeFeeds`, one per range, which is fed the range's durable log entries in order
and keeps the *resolved timestamp*; `RangeFeed`, one subscription to a span of the range from a
timestamp (exclusive); and `SpanFeed`, which subscribes to any spans and outlives the ranges under
it. They promise what `kvlayer.events` says.

Words: a feed *catches up* on what was committed between its start and its registration, from a
snapshot of the engine, and is *steady* from then on. An entry is *delivered* when the processor has
taken it. A closing *takes effect* when every entry it depends on was delivered.

It must never know: how the range stores, replicates or locks. It sees the range through
`RangeFeedHost`, which the range implements, and is driven off logical operations.
"""

from .budget import MemoryBudget
from .host import TICK_INTERVAL, Closing, DurableEntry, PushOutcome, PushVerdict
from .processor import RangeFeeds
from .registration import RangeFeed
from .router import TickedFeed
from .scan_pace import ScanPace
from .span_feed import SpanFeed

__all__ = [
    "TICK_INTERVAL",
    "Closing",
    "DurableEntry",
    "MemoryBudget",
    "PushOutcome",
    "PushVerdict",
    "RangeFeed",
    "RangeFeeds",
    "ScanPace",
    "SpanFeed",
    "TickedFeed",
]
