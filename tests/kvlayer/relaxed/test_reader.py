"""What a reader makes of a log, and what it says of one that is not whole."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tailrace.kvlayer.relaxed.errors import (
    ContradictingLines,
    ForeignDomain,
    PendingLimit,
    SurvivorError,
    TooManyEvents,
)
from tailrace.kvlayer.relaxed.events import Event, Line, Record, Snapshot, lines_table
from tailrace.kvlayer.relaxed.joint import Quiet, joint_cuts
from tailrace.kvlayer.relaxed.reader import ChangeSet, Reader
from tests.kvlayer.relaxed.relaxed_lines import DOMAIN, Store

State = dict[tuple[str, bytes, str], bytes]


def _event(id: int, ordinal: int, old: bytes | None, new: bytes | None) -> Event:
    return Event(DOMAIN, id, ordinal, "crashes", b"1", "signal", old, new)


def _record(begin: int, end: int, count: int, *, complete: bool = True) -> Record:
    return Record(domain=DOMAIN, begin=begin, end=end, count=count, complete=complete)


def _read(lines: list[Line], position: int | None = 0) -> tuple[Reader, list[ChangeSet]]:
    reader = Reader(DOMAIN, position)
    reader.feed(lines_table(lines))
    return reader, list(reader.advance())


def test_racing_writes_leave_one_survivor() -> None:
    lines: list[Line] = [_event(5, 0, b"b", b"c"), _event(6, 0, None, b"b")]
    lines += [_event(7, 0, b"c", b"b"), _record(0, 8, 3), _record(8, 9, 0)]
    _, (change_set,) = _read(lines)
    assert change_set.changes.to_pylist() == [
        {"table": "crashes", "row": b"1", "column": "signal", "old": None, "new": b"b"}
    ]
    assert (change_set.begin, change_set.end) == (0, 9)


def test_nothing_is_shown_before_a_mark() -> None:
    reader, shown = _read([_event(5, 0, None, b"a"), _record(0, 6, 1)])
    assert shown == [] and reader.position == 0
    reader.feed(lines_table([_record(6, 7, 0)]))
    assert [each.end for each in reader.advance()] == [7]


def test_doubles_are_dropped() -> None:
    lines: list[Line] = [_event(5, 0, None, b"a"), _record(0, 6, 1), _record(6, 7, 0)]
    reader, shown = _read(lines * 3)
    assert [each.event_count for each in shown] == [1]
    reader.feed(lines_table(lines))
    assert list(reader.advance()) == [] and reader.pending_count == 0


def test_contradicting_doubles_are_refused() -> None:
    with pytest.raises(ContradictingLines, match=r"event 0 of batch 0+5 "):
        _read([_event(5, 0, None, b"a"), _event(5, 0, None, b"b"), _record(0, 6, 1)])
    with pytest.raises(ContradictingLines, match="two records"):
        _read([_record(0, 6, 1), _record(0, 6, 2)])


def test_lines_of_another_domain_are_refused() -> None:
    with pytest.raises(ForeignDomain, match=f"{DOMAIN + 1:016x}"):
        Reader(DOMAIN + 1, 0).feed(lines_table([_record(0, 6, 1)]))


def test_store_that_wrote_behind_the_logs_back_is_noticed() -> None:
    lines: list[Line] = [
        _event(5, 0, None, b"a"),
        _event(5, 1, b"b", b"c"),
        _record(0, 6, 2),
        _record(6, 7, 0),
    ]
    with pytest.raises(SurvivorError, match=r"'signal' of row b'1' of 'crashes'"):
        _read(lines)


def test_epoch_with_more_events_than_it_counts_is_refused() -> None:
    with pytest.raises(TooManyEvents, match="has 2 events, and its record counts 1"):
        _read([_event(5, 0, None, b"a"), _event(5, 1, b"a", b"b"), _record(0, 6, 1)])


def test_incomplete_epoch_makes_states_unknown_until_a_snapshot() -> None:
    lines: list[Line] = [_event(5, 0, None, b"a"), _record(0, 6, 1, complete=False)]
    lines += [_record(6, 7, 0), _event(8, 0, b"?", b"c"), _record(7, 9, 1), _record(9, 10, 0)]
    reader, shown = _read(lines)
    assert shown == [] and reader.position is None and reader.unknown_since == 0
    cells = {("crashes", b"1", "signal"): b"?"}
    reader.feed(lines_table([Snapshot(domain=DOMAIN, cut=7, cells=cells)]))
    snapshot, change_set = reader.advance()
    assert snapshot.snapshot and snapshot.end == 7
    assert change_set.changes.column("new").to_pylist() == [b"c"]


def test_new_domain_is_unknown_until_a_snapshot() -> None:
    reader, shown = _read([_event(5, 0, None, b"a"), _record(0, 6, 1), _record(6, 7, 0)], None)
    assert shown == [] and reader.position is None


def test_pending_lines_are_bounded() -> None:
    reader = Reader(DOMAIN, 0, pending_bytes_max=10)
    with pytest.raises(PendingLimit):
        reader.feed(lines_table([_event(5, 0, None, b"a")]))


def _log_of_1000() -> list[Line]:
    """By one thread, in batches of one to five; often at rest."""
    store, random = Store(), Random(7)
    while len(store.lines) < 1000:
        store.now += 1000
        with store.domain.batch():
            for _ in range(random.randint(1, 5)):
                store.write(b"%d" % random.randrange(9), "signal", b"%d" % random.randrange(99))
    return sorted(store.lines, key=lambda line: _id(line))


def _id(line: Line) -> int:
    assert not isinstance(line, Snapshot)
    return line.id if isinstance(line, Event) else line.end


def _states(lines: list[Line], *, events_min: int = 0) -> tuple[list[tuple[int, State]], str]:
    """Each state shown, with its cut, and what is named as missing."""
    reader = Reader(DOMAIN, 0)
    reader.feed(lines_table(lines))
    state: State = {}
    states = []
    for change_set in reader.advance(events_min=events_min):
        for change in change_set.changes.to_pylist():
            state[change["table"], change["row"], change["column"]] = change["new"]
        states.append((change_set.end, dict(state)))
    return states, "; ".join(map(str, reader.gaps()))


def test_losing_any_one_line_is_named() -> None:
    """Any event, and any record but the last, of a log of 1,000 lines."""
    lines = _log_of_1000()
    whole, nothing = _states(lines)
    assert not nothing
    records = [line for line in lines if isinstance(line, Record)]
    assert all(first.end == second.begin for first, second in pairwise(records))
    for at, lost in enumerate(lines):
        if lost is records[-1]:
            continue
        shown, named = _states(lines[:at] + lines[at + 1 :], events_min=10_000)
        assert all(state in whole for state in shown), lost
        epoch = lost if isinstance(lost, Record) else _epoch_of(_id(lost), records)
        assert f"epoch {epoch.begin:016x}-{epoch.end:016x}" in named, (lost, named)


def _epoch_of(id: int, records: list[Record]) -> Record:
    return next(each for each in records if each.begin <= id < each.end)


def test_missing_ordinals_are_named() -> None:
    lines: list[Line] = [_event(5, 0, None, b"a"), _event(5, 2, b"b", b"c"), _record(0, 6, 4)]
    reader, _ = _read(lines)
    (gap,) = reader.gaps()
    assert str(gap).endswith(
        "2 of 4 events; batch 0000000000000005 lacks ordinal 1; 1 at the end of a batch"
    )


def test_joint_cuts_are_where_quiet_intervals_overlap() -> None:
    quiet = {
        1: [Quiet(cut=10, until=20), Quiet(cut=40, until=None)],
        2: [Quiet(cut=5, until=9), Quiet(cut=15, until=30), Quiet(cut=35, until=50)],
    }
    assert list(joint_cuts(quiet)) == [{1: 10, 2: 15}, {1: 40, 2: 35}]


def test_snapshot_comes_in_pieces_and_twice() -> None:
    """Its doubles count for nothing."""
    cells = {("crashes", b"%d" % row, "signal"): b"6" for row in range(3)}
    lines = lines_table([Snapshot(domain=DOMAIN, cut=4, cells=cells)])
    reader = Reader(DOMAIN, None)
    for first, last in ((0, 3), (1, 3), (2, 3)):
        reader.feed(lines.slice(first, last - first))
        assert list(reader.advance()) == []
    reader.feed(lines.slice(3))
    (snapshot,) = reader.advance()
    assert set(snapshot.changes["row"].to_pylist()) == {b"0", b"1", b"2"}
    assert snapshot.changes.num_rows == 3
    assert reader.cell_count == 0


def test_rest_is_left_until_it_is_wanted() -> None:
    reader = Reader(DOMAIN, 0)
    reader.feed(lines_table([_event(5, 0, None, b"a"), _record(0, 6, 1), _record(6, 7, 0)]))
    assert list(reader.advance(events_min=2, rest=False)) == []
    reader.feed(lines_table([_event(8, 0, b"a", b"b"), _record(7, 9, 1), _record(9, 10, 0)]))
    (change_set,) = reader.advance(events_min=2, rest=False)
    assert (change_set.end, change_set.event_count) == (10, 2)
    assert change_set.changes["new"].to_pylist() == [b"b"]
