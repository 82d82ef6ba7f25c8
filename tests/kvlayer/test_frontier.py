"""The span frontier: one claim a test, and a naive model over a small key space."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.frontier import Entries, Frontier, part_of, with_part, without
from tailrace.kvlayer.span import Span


def span(text: str) -> Span:
    """`ac` is [a, c)."""
    return Span(text[:1].encode(), text[1:].encode())


def at(ts: int) -> Timestamp:
    return Timestamp(ts)


def test_starts_unstarted() -> None:
    frontier = Frontier([span("ac"), span("xz")])
    assert frontier.low_water == ZERO
    assert repr(frontier) == "[a, c)@0 [x, z)@0"


def test_forward_splits_at_edges() -> None:
    frontier = Frontier([span("az")], at(10))
    assert not frontier.forward(span("cf"), at(12))
    assert repr(frontier) == "[a, c)@10 [c, f)@12 [f, z)@10"


def test_forward_merges_equal_neighbours() -> None:
    frontier = Frontier([span("az")], at(10))
    frontier.forward(span("cf"), at(12))
    frontier.forward(span("ac"), at(12))
    assert repr(frontier) == "[a, f)@12 [f, z)@10"


def test_forward_says_when_low_water_rises() -> None:
    frontier = Frontier([span("ac"), span("ce")], at(10))
    assert not frontier.forward(span("ac"), at(12))
    assert frontier.forward(span("be"), at(11))
    assert frontier.low_water == 11


def test_forward_never_moves_down() -> None:
    frontier = Frontier([span("ac")], at(10))
    assert not frontier.forward(span("az"), at(9))
    assert repr(frontier) == "[a, c)@10"


def test_forward_ignores_untracked_keys() -> None:
    frontier = Frontier([span("bd"), span("fh")], at(10))
    assert frontier.forward(span("az"), at(20))
    assert repr(frontier) == "[b, d)@20 [f, h)@20"
    assert not frontier.forward(span("df"), at(30))


def test_add_extends_tracked_keys() -> None:
    frontier = Frontier([span("ac")], at(10))
    frontier.add(span("be"), at(5))
    assert repr(frontier) == "[a, b)@10 [b, e)@5"
    assert frontier.low_water == 5


def test_entries_round_trip() -> None:
    frontier = Frontier([span("az")], at(10))
    frontier.forward(span("cf"), at(12))
    copy = Frontier.from_entries(frontier.entries())
    assert repr(copy) == repr(frontier)


def test_change_during_iteration_raises() -> None:
    frontier = Frontier([span("ac"), span("xz")], at(10))
    with pytest.raises(RuntimeError, match="changed while"):
        for entry, _ in frontier.entries():
            frontier.forward(entry, at(11))


def test_repr_shows_binary_keys_as_hex() -> None:
    assert repr(Frontier([Span(b"\x00", b"\xff")])) == "[0x00, 0xff)@0"


def test_heap_stays_small() -> None:
    frontier = Frontier([span("az")], at(1))
    for ts in range(2, 1000):
        frontier.forward(span("az"), at(ts))
    assert len(frontier._lowest) < 100


class Counted(list[tuple[Span, Timestamp]]):
    """Entries that count how many of them are looked at."""

    looks = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looks += len(found) if isinstance(place, slice) else 1
        return found


def test_a_part_is_found_without_looking_at_the_others() -> None:
    entries = Counted((Span.point(b"%05d" % key), at(key + 1)) for key in range(10_000))
    assert part_of(entries, Span(b"05000", b"05002")) == entries[5000:5002]
    assert entries.looks < 50, entries.looks


KEYS = st.integers(min_value=0, max_value=11)
STEPS = st.lists(
    st.tuples(st.booleans(), KEYS, KEYS, st.integers(min_value=1, max_value=6)), max_size=30
)


@settings(max_examples=300)
@given(STEPS)
def test_agrees_with_naive_model(steps: list[tuple[bool, int, int, int]]) -> None:
    """The model keeps a timestamp for each key."""
    frontier, model = Frontier(), dict[int, int]()
    for adding, low, high, ts in steps:
        if low == high:
            continue
        low, high = min(low, high), max(low, high)
        part = Span(bytes((low,)), bytes((high,)))
        before = min(model.values(), default=0)
        if adding:
            frontier.add(part, at(ts))
            model |= dict.fromkeys(range(low, high), ts)
        else:
            rose = frontier.forward(part, at(ts))
            model |= {key: max(ts, model[key]) for key in range(low, high) if key in model}
            assert rose == (min(model.values(), default=0) > before)
        frontier.check_invariants()
        assert frontier.low_water == min(model.values(), default=0)
        assert {key: frontier.at(bytes((key,))) for key in range(12)} == {
            key: model.get(key) for key in range(12)
        }


def by_key(entries: Entries) -> dict[int, int]:
    """The model's answers about entries, which are in key order."""
    assert all(one.end <= two.start for (one, _), (two, _) in pairwise(entries)), entries
    return {key: ts for part, ts in entries for key in range(part.start[0], part.end[0])}


@settings(max_examples=300)
@given(STEPS, KEYS, KEYS)
def test_parts_agree_with_naive_model(
    steps: list[tuple[bool, int, int, int]], low: int, high: int
) -> None:
    frontier = Frontier()
    for _, start, end, ts in steps:
        if start < end:
            frontier.add(Span(bytes((start,)), bytes((end,))), at(ts))
    entries, model = [*frontier.entries()], by_key([*frontier.entries()])
    low, high = min(low, high), max(low, high) + 1
    part = Span(bytes((low,)), bytes((high,)))
    inside = {key: ts for key, ts in model.items() if low <= key < high}
    outside = {key: ts for key, ts in model.items() if key not in inside}
    assert by_key(part_of(entries, part)) == by_key(frontier.part(part)) == inside
    assert by_key(without(entries, part)) == outside
    put = dict.fromkeys(range(low, high), 9)
    assert by_key(with_part(entries, part, [(part, at(9))])) == outside | put
