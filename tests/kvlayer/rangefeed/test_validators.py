"""Each validator sees the one thing it is for, and nothing else."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.events import Checkpoint, Event, SteadyState, ValueBatch
from tailrace.kvlayer.span import Span
from tests.harness.small_range import key
from tests.harness.validators import History, Watch

SPAN = Span.prefix(key(""))
A, B = key("a"), key("b")
START = Timestamp(100)
STEADY = SteadyState(SPAN)


def value(name: bytes, ts: int, body: bytes | None = b"v", previous: bytes = b"") -> ValueBatch:
    return ValueBatch(
        keys=[name],
        values=[body],
        timestamps=[Timestamp(ts)],
        previous=[previous] if previous else None,
    )


def checkpoint(ts: int) -> Checkpoint:
    return Checkpoint((SPAN,), Timestamp(ts))


def failures(events: list[Event], *, restart_after: int | None = None) -> set[str]:
    """The validators that complain, of a feed of a@110 and a@120, b@130 deleted."""
    history = History()
    for ts, rows in ((110, {A: b"v"}), (120, {A: b"v"}), (130, {B: None})):
        history.note_commit(Timestamp(ts), rows)
    watch = Watch(history, [(SPAN, START)])
    for position, event in enumerate(events):
        if position == restart_after:
            watch.note_restart(SPAN, watch.resolved)
        watch.note_events([event])
    watch.finish()
    return {failure.split(":")[0].removesuffix("Validator") for failure in watch.failures}


GOOD: list[Event] = [
    value(A, 110),
    STEADY,
    checkpoint(115),
    value(A, 120),
    value(B, 130, None),
    checkpoint(131),
]


def test_good_feed_passes() -> None:
    assert failures(GOOD) == set()


def test_repetition_after_a_restart_passes() -> None:
    again: list[Event] = [value(A, 120), checkpoint(131)]
    assert failures([*GOOD[:4], *again[:1], *GOOD[4:]], restart_after=4) == set()
    assert failures([*GOOD[:4], *again[:1], *GOOD[4:]]) == {"Delivery"}
    assert failures([*GOOD[:4], value(A, 110), *GOOD[4:]], restart_after=4) == {"Delivery"}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([*GOOD[:3], *GOOD[4:]], {"Delivery"}),
        ([*GOOD[:5], value(B, 131, b"x"), GOOD[5]], {"Delivery"}),
        ([value(A, 110, b"x"), *GOOD[1:]], {"Delivery"}),
        ([STEADY, value(A, 120), value(A, 110), value(B, 130, None), GOOD[5]], {"Order"}),
        ([value(A, 120), value(A, 110), STEADY, value(B, 130, None), GOOD[5]], set()),
        ([*GOOD[:3], GOOD[4], GOOD[5], value(A, 120), GOOD[5]], {"Checkpoint"}),
        (GOOD[:5], {"Progress"}),
        ([*GOOD[:5], checkpoint(129)], {"Progress"}),
        ([value(A, 100), *GOOD], {"Start", "Delivery"}),
        ([*GOOD[:3], value(A, 120, previous=b"v"), *GOOD[4:]], set()),
        ([*GOOD[:3], value(A, 120, previous=b"x"), *GOOD[4:]], {"Previous"}),
    ],
)
def test_broken_feed_is_seen(events: list[Event], expected: set[str]) -> None:
    assert failures(events) == expected
