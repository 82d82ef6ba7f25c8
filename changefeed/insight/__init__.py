"""Insight: what a feed tells of itself, and what it would do.

Each report is values; nothing here changes a feed. `latency` says where a running feed's rows spend
their time, `lag` how far each span of a feed is behind whatever the feed does, and `explanation`
what a feed would do that does not exist.
"""

from .explanation import Fact, explain_feed
from .lag import FeedPosition, SpanLag, feed_lag, lagging_ranges
from .latency import StageReport, stage_reports

__all__ = [
    "Fact",
    "FeedPosition",
    "SpanLag",
    "StageReport",
    "explain_feed",
    "feed_lag",
    "lagging_ranges",
    "stage_reports",
]
