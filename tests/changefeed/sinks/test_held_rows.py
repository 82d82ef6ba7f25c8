"""Rows that wait are due once, when their key has come as far."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from tailrace.changefeed.sinks import held_rows
from tailrace.changefeed.sinks.held_rows import COMMIT_TIMESTAMP, ROW_KEY, Cut, HeldRows
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.span import Span

KEYS = [bytes([letter]) for letter in range(ord("a"), ord("z") + 1)]


def batch(changes: list[tuple[bytes, int]]) -> pa.Table:
    keys, timestamps = zip(*changes, strict=True)
    return pa.table(
        {
            ROW_KEY: pa.array(keys, pa.binary()),
            COMMIT_TIMESTAMP: pa.array(timestamps, pa.int64()),
        }
    )


def changes_of(rows: pa.Table) -> list[tuple[bytes, int]]:
    keys, timestamps = rows.column(ROW_KEY), rows.column(COMMIT_TIMESTAMP)
    return list(zip(keys.to_pylist(), timestamps.to_pylist(), strict=True))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(8))
def test_each_row_is_taken_once_when_its_key_has_come_as_far(seed: int) -> None:
    random = Random(seed)
    reached = dict.fromkeys(KEYS[:-1], 0)  # the last key's target has left the feed
    held, waiting = HeldRows(random.choice([0, 10_000, 10**9])), list[tuple[bytes, int]]()
    for step in range(1, 60):
        changes = [(random.choice(KEYS), random.randrange(step, step + 5)) for _ in range(5)]
        changes = [(key, at) for key, at in changes if at > reached.get(key, 0)]
        if changes:
            held.add(batch(changes), Span.of_keys([key for key, _ in changes]))
            waiting += changes
        start, end = sorted(random.sample(range(len(KEYS)), 2))
        reached |= {key: step for key in KEYS[start:end] if key in reached}
        cut = Cut([(Span.point(key), Timestamp(at)) for key, at in reached.items()])
        due = [(key, at) for key, at in waiting if at <= reached.get(key, 10**9)]
        taken = [change for rows in held.take(cut) for change in changes_of(rows)]
        assert [each for each in taken if each[0] in reached] == [
            each for each in due if each[0] in reached
        ]
        held.drop(cut)
        waiting = [change for change in waiting if change not in taken]
    assert bool(held) == bool(waiting)
    held.close()


def test_what_is_due_is_cut_into_parts_that_are_bounded() -> None:
    """Of rows in the order of their timestamps; those of one timestamp are one part."""
    held = HeldRows()
    for at in (1, 2, 2, 3, 4, 9):
        held.add(batch([(b"a", at)] * 50), Span.of_keys([b"a"]))
    cut = Cut.at_one(Timestamp(5))
    size = batch([(b"a", 1)] * 50).nbytes
    parts = held.parts(cut, size)
    shown = []
    for part in map(cut.upto, parts):
        shown.append([at for rows in held.take(part) for _, at in changes_of(rows)])
        held.drop(part)
    assert shown == [[1] * 50 + [2] * 100, [3] * 50 + [4] * 50]
    assert held.parts(cut, size) == []
    assert held.least == 9


@pytest.mark.parametrize("seen_bytes", [0, 1 << 30])
@pytest.mark.parametrize("memory_bytes", [0, 1 << 30])
def test_live_rows_that_came_twice_are_taken_once(
    seen_bytes: int, memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many wait, in memory or in the file; those of a scan are none."""
    monkeypatch.setattr(held_rows, "SEEN_BYTES_MAX", seen_bytes)
    held = HeldRows(memory_bytes)
    held.add(batch([(b"a", 1), (b"b", 1)]))
    held.add(batch([(b"a", 1)]))
    for changes in ([(b"a", 2), (b"b", 3), (b"a", 2)], [(b"b", 3), (b"c", 9)], [(b"a", 3)]):
        held.add(batch(changes), live=True)
    cut = Cut.at_one(Timestamp(5))
    scanned = [(b"a", 1), (b"b", 1), (b"a", 1)]
    for _ in range(2):
        taken = [change for rows in held.take_once(cut) for change in changes_of(rows)]
        assert taken == [*scanned, (b"a", 2), (b"b", 3), (b"a", 3)]
    held.drop(cut)
    held.add(batch([(b"c", 9)]), live=True)
    last = [
        change for rows in held.take_once(Cut.at_one(Timestamp(9))) for change in changes_of(rows)
    ]
    assert last == [(b"c", 9)]
    held.close()
