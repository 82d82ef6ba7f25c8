"""Where a feed's lag arises."""

from __future__ import annotations

from tailrace.changefeed.pipeline.lag_split import LagSplit, split_lag
from tailrace.kvlayer.clock import Timestamp, duration


def at(seconds: float) -> Timestamp:
    return Timestamp(duration(seconds=seconds))


def test_what_is_sent_waits_for_the_network() -> None:
    found = split_lag(acknowledged=at(1), emitted=at(4), told=at(5), now=at(7), sending=True)
    assert found == LagSplit(store=2.0, capture=1.0, network=3.0)


def test_what_rests_waits_for_its_checkpoint() -> None:
    found = split_lag(acknowledged=at(1), emitted=at(4), told=at(5), now=at(7), sending=False)
    assert found == LagSplit(store=2.0, capture=4.0, network=0.0)


def test_no_part_is_negative() -> None:
    """The clock of a joined node is behind what its range feed has told."""
    found = split_lag(acknowledged=at(5), emitted=at(4), told=at(3), now=at(2), sending=True)
    assert found == LagSplit(store=0.0, capture=0.0, network=0.0)
