"""Insight: what a feed tells of itself, and what it would do.

Each report is values; nothing here changes a feed. `latency` says where a running feed's rows spend
their time, `lag` how far each span of a feed is behind, whatever the feed does.
"""

from .lag import FeedPosition, SpanLag, feed_lag
from .latency import StageReport, stage_reports

__all__ = ["FeedPosition", "SpanLag", "StageReport", "feed_lag", "stage_reports"]
