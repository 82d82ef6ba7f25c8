"""Batches and writes of one process."""

import contextvars
import os
from pathlib import Path

import pytest

from tailrace.kvlayer.relaxed.errors import QuiescenceOverdue
from tailrace.kvlayer.relaxed.events import lines_table
from tailrace.kvlayer.relaxed.machine import local_domain, shared_domain
from tailrace.kvlayer.relaxed.reader import Reader
from tailrace.kvlayer.relaxed.segment import read_segment
from tailrace.kvlayer.relaxed.shared import SharedAttachment
from tests.kvlayer.relaxed.relaxed_lines import DOMAIN, Cells, Store


def test_write_is_an_exchange_with_an_event() -> None:
    store = Store()
    with store.domain.batch():
        assert store.write(b"1", "signal", b"6") is None
        assert store.write(b"1", "signal", b"11") == b"6"
    first, second = store.log.events
    assert (first.old, first.new, first.ordinal) == (None, b"6", 0)
    assert (second.old, second.new, second.ordinal) == (b"6", b"11", 1)
    assert first.id == second.id


def test_write_outside_a_batch_has_its_own() -> None:
    store = Store()
    store.write(b"1", "signal", b"6")
    store.write(b"1", "signal", b"7")
    first, second = store.log.events
    assert first.id != second.id
    assert [record.count for record in store.log.records] == [1, 0, 1, 0]


def test_inner_batch_shadows() -> None:
    store = Store()
    with store.domain.batch():
        store.write(b"1", "signal", b"6")
        with store.domain.batch(), store.domain.ensure_batch() as inner:
            pass
        store.write(b"1", "signal", b"7")
    assert {event.id for event in store.log.events} != {inner}
    assert len({event.id for event in store.log.events}) == 1


def test_batch_unwinds_when_its_block_fails() -> None:
    store = Store()
    with pytest.raises(KeyError), store.domain.batch():
        store.write(b"1", "signal", b"6")
        raise KeyError
    assert [record.count for record in store.log.records] == [1, 0]


def test_closed_batch_counts_as_none() -> None:
    """A context that was copied inside a batch outlives it."""
    store = Store()
    with store.domain.batch(), store.domain.ensure_batch() as id:
        inherited = contextvars.copy_context()
    inherited.run(store.write, b"1", "signal", b"6")
    (event,) = store.log.events
    assert event.id != id


def test_failed_exchange_is_no_event() -> None:
    store = Store()

    def refuse(row: bytes, column: str, new: bytes | None) -> bytes | None:
        raise ValueError

    with pytest.raises(ValueError), store.domain.batch():
        store.domain.write(refuse, "crashes", b"1", "signal", b"6")
    assert store.log.events == []


def test_event_that_cannot_be_kept_leaves_its_epoch_incomplete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store()

    def full(*batch: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(store.log, "append", full)
    with pytest.raises(OSError, match="no space"):
        store.write(b"1", "signal", b"6")
    assert [record.complete for record in store.log.records] == [False, True]


def test_batch_that_never_ends_is_named() -> None:
    """New batches wait for quiescence, and are told who keeps it away."""
    store = Store(quiesce_within_ns=10**9, patience_ns=10**8)
    with store.domain.batch(), store.domain.ensure_batch() as id:
        store.now += 2 * 10**9
        other = contextvars.Context()
        with pytest.raises(QuiescenceOverdue, match=f"process {os.getpid()}.*{id:016x}"):
            other.run(store.write, b"1", "signal", b"6")
        store.write(b"1", "signal", b"7")
    other.run(store.write, b"1", "signal", b"8")


def test_snapshot_needs_no_batch_around_it() -> None:
    store = Store()
    with (
        store.domain.batch(),
        pytest.raises(QuiescenceOverdue, match="waits for its own end"),
        store.domain.quiescence(),
    ):
        pass


def test_snapshot_is_of_the_store_at_rest() -> None:
    store = Store()
    store.write(b"1", "signal", b"6")
    cut = store.domain.snapshot(lambda: dict(store.cells.values))
    store.write(b"1", "signal", b"7")
    reader = Reader(DOMAIN)
    reader.feed(lines_table([*store.lines, *store.log.snapshots]))
    snapshot, change_set = reader.advance()
    assert (snapshot.snapshot, snapshot.end) == (True, cut)
    assert snapshot.changes.column("new").to_pylist() == [b"6"]
    assert change_set.changes.column("new").to_pylist() == [b"7"]


def test_long_batch_is_counted_by_pieces() -> None:
    store = Store()
    with store.domain.batch():
        for value in range(2500):
            store.write(b"1", "signal", b"%d" % value)
        assert len(store.log.events) == 2000
    assert [event.ordinal for event in store.log.events] == list(range(2500))
    reader = Reader(DOMAIN, 0)
    reader.feed(lines_table(store.lines))
    (change_set,) = reader.advance()
    assert change_set.changes.to_pylist()[0]["new"] == b"2499"


def _in_child(work: object) -> None:
    assert callable(work)
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_has_a_domain_of_its_own(tmp_path: Path) -> None:
    domain, cells = local_domain(tmp_path), Cells()
    with domain.batch():
        domain.write(cells.exchange, "crashes", b"1", "signal", b"6")
        _in_child(lambda: domain.write(cells.exchange, "crashes", b"1", "signal", b"7"))
    segments = [read_segment(path) for path in tmp_path.glob("*.relaxed")]
    assert len({segment.domain for segment in segments}) == 2
    for segment in segments:
        reader = Reader(segment.domain, 0)
        reader.feed(segment.lines)
        assert [each.event_count for each in reader.advance()] == [1]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_death_in_a_batch_is_noticed_by_whoever_writes(tmp_path: Path) -> None:
    """Nobody waits for quiescence: the domain that stays busy is looked at all the same."""
    domain, cells = shared_domain(tmp_path), Cells()

    def die() -> None:
        scope = domain.batch()
        scope.__enter__()
        os._exit(0)

    _in_child(die)
    attachment = domain.attachment
    assert isinstance(attachment, SharedAttachment)
    attachment._deaths_looked_for_ns = 0
    domain.write(cells.exchange, "crashes", b"1", "signal", b"6")
    domain.write(cells.exchange, "crashes", b"1", "signal", b"7")
    assert attachment.cut() is not None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_child_takes_a_slot_of_the_shared_domain(tmp_path: Path) -> None:
    """Its parent's batch is none of its own, and goes on."""
    domain, cells = shared_domain(tmp_path), Cells()
    with domain.batch():
        domain.write(cells.exchange, "crashes", b"1", "signal", b"6")
        _in_child(lambda: domain.write(cells.exchange, "crashes", b"2", "signal", b"7"))
    domain.attachment.in_flight()
    segments = [read_segment(path) for path in tmp_path.glob("*.relaxed")]
    assert {segment.domain for segment in segments} == {domain.id}
    reader = Reader(domain.id, 0)
    for segment in segments:
        reader.feed(segment.lines)
    assert sum(each.event_count for each in reader.advance()) == 2
    assert reader.gaps() == []
