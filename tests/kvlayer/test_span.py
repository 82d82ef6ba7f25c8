"""Spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.kvlayer.span import Span, prefix_end

keys = st.binary(max_size=3)
spans = (
    st.tuples(keys, keys)
    .filter(lambda ends: ends[0] != ends[1])
    .map(lambda ends: Span(min(ends), max(ends)))
)


def test_empty_and_inverted_spans_are_refused() -> None:
    with pytest.raises(ValueError, match="empty or inverted"):
        Span(b"a", b"a")
    with pytest.raises(ValueError, match="empty or inverted"):
        Span(b"b", b"a")


@given(keys, keys)
def test_point_holds_its_key_alone(key: bytes, other: bytes) -> None:
    assert Span.point(key).contains(other) == (key == other)


@given(keys.filter(lambda key: key.strip(b"\xff") != b""), keys)
def test_prefix_holds_what_begins_with_it(prefix: bytes, key: bytes) -> None:
    assert Span.prefix(prefix).contains(key) == key.startswith(prefix)


@pytest.mark.parametrize("prefix", [b"", b"\xff", b"\xff\xff"])
def test_no_key_is_above_these_prefixes(prefix: bytes) -> None:
    with pytest.raises(ValueError, match="no key is above"):
        prefix_end(prefix)


@given(spans, spans, keys)
def test_intersection_holds_what_both_hold(one: Span, other: Span, key: bytes) -> None:
    common = one.intersect(other)
    assert (common is not None) == one.overlaps(other)
    held = common is not None and common.contains(key)
    assert held == (one.contains(key) and other.contains(key))
    assert one.covers(other) == (common == other)
