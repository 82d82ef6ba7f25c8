"""Reads of versions against an exact model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.kvlayer import keys
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.command import Command, RemoveVersions, WriteValue, engine_batch
from tailrace.kvlayer.engine import EngineBatch, MemoryEngine
from tailrace.kvlayer.mvcc import (
    LIVE,
    TOMBSTONE,
    body_of,
    changes_between,
    find_garbage,
    find_outdated,
    newest_version,
    pausing_scan_at,
    read_at,
    scan_at,
    time_entries,
)
from tailrace.kvlayer.mvcc.incremental import OTHERS_MAX
from tailrace.kvlayer.mvcc.read import PASSED_MAX
from tailrace.kvlayer.span import Span
from tests.harness.stores import key

History = dict[tuple[bytes, Timestamp], bytes | None]

NAMES = [key(name, table) for table in (7, 8) for name in ("a0", "b0", "b1", "c0")]
BOUNDS = [
    *NAMES,
    key(""),
    key("b"),
    key("d"),
    key("b0\x00"),
    key("b1\x00"),
    key("", 8),
    key("z", 8),
]

histories = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 40).map(Timestamp)),
    st.none() | st.binary(max_size=2),
    max_size=60,
)
spans = (
    st.tuples(st.sampled_from(BOUNDS), st.sampled_from(BOUNDS))
    .filter(lambda bounds: bounds[0] < bounds[1])
    .map(lambda bounds: Span(*bounds))
)
times = st.integers(0, 41).map(Timestamp)
few_times = st.integers(0, 4).map(Timestamp)
crowded_histories = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), few_times), st.just(b""), min_size=10
)
"""Most of their timestamps are those of several keys."""


def engine_of(history: History) -> MemoryEngine:
    """What was written at one timestamp is written by one operation."""
    engine = MemoryEngine()
    written: dict[Timestamp, WriteValue] = {}
    for (name, ts), body in history.items():
        op = written.setdefault(ts, WriteValue(ts, [], []))
        op.keys.append(name)
        op.values.append(TOMBSTONE if body is None else LIVE + body)
    for index, op in enumerate(written.values(), 1):
        engine.write(engine_batch(Command(1, Timestamp(0), [op])), applied_index=index)
    return engine


def model_at(history: History, span: Span, at: Timestamp) -> list[tuple[bytes, bytes]]:
    state: dict[bytes, bytes | None] = {}
    for name, ts in sorted(history, key=lambda version: version[1]):
        if ts <= at and span.contains(name):
            state[name] = history[name, ts]
    return sorted((name, body) for name, body in state.items() if body is not None)


@given(histories, spans, times)
def test_scan_sees_the_newest_versions(history: History, span: Span, at: Timestamp) -> None:
    engine = engine_of(history)
    expected = model_at(history, span, at)
    assert list(scan_at(engine, span, at)) == expected
    assert list(scan_at(engine, span, at, reverse=True)) == expected[::-1]


@given(histories, st.sampled_from(NAMES), times)
def test_get_sees_the_newest_version(history: History, name: bytes, at: Timestamp) -> None:
    engine = engine_of(history)
    versions = sorted(ts for written, ts in history if written == name)
    below = [ts for ts in versions if ts <= at]
    found = read_at(engine, name, at)
    assert (None if found is None else found[0]) == (below[-1] if below else None)
    assert newest_version(engine, name) == (versions[-1] if versions else None)


def test_scan_steps_over_many_versions() -> None:
    history: History = {(NAMES[0], Timestamp(ts)): b"%d" % ts for ts in range(1, 100)}
    history[NAMES[1], Timestamp(50)] = b"x"
    engine = engine_of(history)
    span = Span(key(""), key("z"))
    for at in (1, 16, 17, 18, 50, 99):
        at_ = Timestamp(at)
        assert list(scan_at(engine, span, at_)) == model_at(history, span, at_)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_pauses_in_what_it_passes_over(reverse: bool) -> None:
    """A million deletions between two rows are not one step of whoever reads in slices."""
    names = [key(f"{number:05}") for number in range(4 * PASSED_MAX)]
    history: History = {(name, Timestamp(5)): None for name in names}
    history[names[0], Timestamp(6)] = history[names[-1], Timestamp(6)] = b"x"
    engine, span = engine_of(history), Span(names[0], names[-1] + b"\0")
    found = list(pausing_scan_at(engine, span, Timestamp(6), reverse=reverse))
    rows = list(scan_at(engine, span, Timestamp(6), reverse=reverse))
    assert [row for row in found if row is not None] == rows
    assert len(rows) == 2
    assert found[0] is not None
    assert found.count(None) >= 2


@given(histories | crowded_histories, spans, times, times)
def test_incremental_finds_every_version(
    history: History, span: Span, after: Timestamp, upto: Timestamp
) -> None:
    found: dict[tuple[bytes, Timestamp], bytes | None] = {}
    newest: dict[bytes, Timestamp] = {}
    for changes in changes_between(engine_of(history), span, after, upto, rows=3):
        assert 0 < len(changes) <= 3
        assert len({name[: keys.KEYSPACE_LENGTH] for name in changes.keys}) == 1
        for name, ts, value in zip(changes.keys, changes.timestamps, changes.values, strict=True):
            assert ts > newest.get(name, 0), "per key from oldest to newest"
            newest[name] = ts
            found[name, ts] = body_of(value)
    assert found == {
        (name, ts): body
        for (name, ts), body in history.items()
        if after < ts <= upto and span.contains(name)
    }


def test_incremental_pauses_in_what_others_wrote() -> None:
    """A range that nobody wrote to is not read past all of its table's changes in one step."""
    history: History = {
        (key(f"b{number:05}"), Timestamp(5)): b"x" for number in range(2 * OTHERS_MAX)
    }
    history[key("a"), Timestamp(6)] = history[key("a"), Timestamp(4)] = b"y"
    span = Span(key("a"), key("b"))
    slices = list(changes_between(engine_of(history), span, Timestamp(3), Timestamp(6)))
    assert [changes.timestamps for changes in slices] == [[4], [], [6]]


@given(histories, spans, times)
def test_garbage_changes_no_read_above(history: History, span: Span, threshold: Timestamp) -> None:
    engine = engine_of(history)
    kept = dict(history)
    resume: bytes | None = None
    while True:
        garbage = find_garbage(engine, span, threshold, resume=resume, entries=4)
        removal = Command(1, Timestamp(0), [RemoveVersions(garbage.keys, garbage.timestamps)])
        engine.write(engine_batch(removal), applied_index=engine.applied_index + 1)
        for version in zip(garbage.keys, garbage.timestamps, strict=True):
            assert span.contains(version[0])
            del kept[version]
        resume = garbage.resume
        if resume is None:
            break
    everything = Span(key(""), key("", 9))
    for at in range(threshold + 1, 43):
        at_ = Timestamp(at)
        assert model_at(kept, everything, at_) == model_at(history, everything, at_)
        assert list(scan_at(engine, everything, at_)) == model_at(history, everything, at_)
    for name in NAMES:
        below = [ts for written, ts in kept if written == name and ts <= threshold]
        if span.contains(name):
            assert len(below) <= 1, "one version at most stays below the threshold"


@given(crowded_histories, spans, few_times, few_times)
def test_trimmed_time_index_tells_the_rest(
    history: History, span: Span, threshold: Timestamp, after: Timestamp
) -> None:
    """The span's keys go up to the threshold; those beside them in an entry, and later ones, do
    not."""
    engine = engine_of(history)
    resume: bytes | None = None
    while True:
        found = find_outdated(engine, span, threshold, resume=resume, entries=2)
        batch = EngineBatch(deletes=found.deletes, puts=found.puts)
        engine.write(batch, applied_index=engine.applied_index + 1)
        resume = found.resume
        if resume is None:
            break
    everything = Span(key(""), key("", 9))
    kept = time_entries(engine, everything, after, Timestamp(41))
    assert {(name, ts) for entry, ts in kept for name in entry} == {
        (name, ts)
        for name, ts in history
        if ts > after and (ts > threshold or not span.contains(name))
    }
