"""The timestamp cache."""

from __future__ import annotations

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.txn.timestamp_cache import POINTS_MAX, SPANS_MAX, TimestampCache

T100, T101 = Timestamp(100), Timestamp(101)


def test_write_under_a_read_is_blocked() -> None:
    cache = TimestampCache()
    cache.add_point(b"a", T100, b"x")
    assert cache.blocks([b"b", b"a"], T100, b"y")
    assert not cache.blocks([b"a"], T101, b"y")
    assert not cache.blocks([b"a"], T100, b"x"), "its own read"


def test_span_covers_what_is_not_there() -> None:
    cache = TimestampCache()
    cache.add_span(Span(b"b", b"d"), T100, b"x")
    assert cache.blocks([b"c"], T100, b"y")
    assert not cache.blocks([b"d"], T100, b"y")
    assert not cache.blocks([b"a", b"e"], T100, b"y"), "the span lies between the two"


def test_two_readers_at_one_timestamp_block_each_other() -> None:
    cache = TimestampCache()
    cache.add_point(b"a", T100, b"x")
    cache.add_point(b"a", T100, b"y")
    assert cache.blocks([b"a"], T100, b"x")
    assert cache.blocks([b"a"], T100, b"y")


def test_overflow_blocks_more_and_never_less() -> None:
    cache = TimestampCache()
    for i in range(POINTS_MAX + 1):
        cache.add_point(b"%d" % i, T100, b"x")
    assert cache.low_water == T100
    assert cache.blocks([b"never read"], T100, b"y")
    assert not cache.blocks([b"never read"], T101, b"y")
    for i in range(SPANS_MAX + 1):
        cache.add_span(Span(b"%04d" % i, b"z"), T101, b"x")
    assert cache.low_water == T101
    assert len(cache) == 0
