from __future__ import annotations

from dataclasses import replace

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState, TableDescriptor
from tailrace.kvlayer.clock import Timestamp
from tailrace.schemafeed.feed import SchemaAnswer, TableDropped
from tailrace.schemafeed.table_events import describe
from tailrace.schemafeed.table_history import TableHistory
from tests.harness.descriptors import KEY, table

V1 = table(1, 100)
V2 = table(2, 180, columns=(KEY,))
V3 = table(3, 190, columns=(KEY,), locked=True)


def history(*versions: TableDescriptor, upto: int = 200) -> TableHistory:
    made = TableHistory(V1, Timestamp(150))
    made.extend(versions, Timestamp(upto))
    return made


def told(answer: SchemaAnswer) -> tuple[list[str], int, int]:
    kinds = [describe(event.kinds) for event in answer.events]
    return kinds, answer.canonical.version, answer.since


def test_it_begins_with_what_holds_at_the_start() -> None:
    assert told(TableHistory(V1, Timestamp(150)).peek(Timestamp(150))) == ([], 1, 100)


def test_events_are_told_up_to_what_was_asked() -> None:
    made = history(V2, V3)
    assert told(made.peek(Timestamp(179))) == ([], 1, 100)
    assert told(made.peek(Timestamp(180))) == (["DROP_COLUMN"], 2, 180)
    assert told(made.peek(Timestamp(200))) == (["DROP_COLUMN", "LOCK"], 3, 190)


def test_popped_events_are_not_told_again() -> None:
    made = history(V2, V3)
    assert told(made.pop(Timestamp(185))) == (["DROP_COLUMN"], 2, 180)
    assert told(made.peek(Timestamp(200))) == (["LOCK"], 3, 190)


def test_a_late_row_is_decoded_as_of_its_own_time() -> None:
    made = history(V2, V3)
    made.pop(Timestamp(200))
    assert told(made.peek(Timestamp(170))) == ([], 1, 100)
    assert made.canonical_at(Timestamp(185)) == V2


def test_what_lies_beyond_the_frontier_is_not_answered() -> None:
    with pytest.raises(AssertionError):
        history(V2).peek(Timestamp(201))


def test_a_version_below_the_frontier_comes_too_late() -> None:
    made = history(upto=200)
    with pytest.raises(AssertionError):
        made.extend([V2], Timestamp(300))


def test_a_dropped_table_answers_below_its_drop() -> None:
    dropped = replace(table(2, 180), state=DescriptorState.DROPPED)
    made = history(dropped)
    assert told(made.peek(Timestamp(179))) == ([], 1, 100)
    with pytest.raises(TableDropped, match=r'"orders" \(id 104\)'):
        made.peek(Timestamp(180))


def test_a_vouched_interval_consumes_lock_changes() -> None:
    locked = table(2, 180, locked=True)
    made = history(locked)
    made.vouch(Timestamp(250))
    assert (made.frontier, made.pending) == (250, False)
    assert told(made.peek(Timestamp(250))) == ([], 2, 180)


def test_a_vouched_interval_consumes_a_comment() -> None:
    """A locked table takes comments, and foreign keys of others, without being unlocked."""
    made = history(replace(table(2, 180), comment="seen"), upto=200)
    made.vouch(Timestamp(190))
    assert (made.frontier, made.pending) == (200, False)
    made = history()
    made.vouch(Timestamp(250))
    made.rejoin(replace(table(2, 240), comment="unseen"))
    assert told(made.peek(Timestamp(250))) == ([], 2, 240)


def test_a_vouched_interval_may_not_hold_a_change() -> None:
    with pytest.raises(AssertionError):
        history(V2).vouch(Timestamp(250))


def test_rejoining_takes_an_unlock_that_nobody_read() -> None:
    made = TableHistory(table(1, 100, locked=True), Timestamp(150))
    made.vouch(Timestamp(250))
    made.rejoin(table(2, 240))
    assert told(made.peek(Timestamp(250))) == ([], 2, 240)


def test_rejoining_at_another_shape_is_a_broken_proof() -> None:
    made = TableHistory(table(1, 100, locked=True), Timestamp(150))
    made.vouch(Timestamp(250))
    with pytest.raises(AssertionError):
        made.rejoin(table(2, 240, columns=(KEY,)))
