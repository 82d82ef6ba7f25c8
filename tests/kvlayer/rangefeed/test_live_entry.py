"""Entries on their way to feeds."""

from __future__ import annotations

import gc

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.command import Command, WriteValue
from tailrace.kvlayer.mvcc.version import LIVE
from tailrace.kvlayer.rangefeed.host import DurableEntry
from tailrace.kvlayer.rangefeed.live_entry import LiveEntry
from tailrace.kvlayer.span import EVERYTHING, Span


def test_a_waiting_entry_holds_its_values_once() -> None:
    write = WriteValue(Timestamp(7), [b"k"], [LIVE + b"body"])
    entry = LiveEntry(DurableEntry(1, Command(1, ZERO, [write]), 100, 0, 0, 0))
    assert entry.concerns(EVERYTHING, ZERO)
    assert not [each for each in gc.get_referents(entry) if isinstance(each, DurableEntry)]
    [batch] = entry.events(EVERYTHING, ZERO, frozenset())
    assert entry.concerns(EVERYTHING, ZERO) and not entry.concerns(Span(b"x", b"y"), ZERO)
    assert getattr(batch, "values", None) == [b"body"]
