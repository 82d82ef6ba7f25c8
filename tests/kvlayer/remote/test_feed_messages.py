"""What a feed's message holds: batches of a raw keyspace that follow one another are one."""

from __future__ import annotations

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.events import Checkpoint, Event, ValueBatch
from tailrace.kvlayer.raw import keyspace_span, raw_key
from tailrace.kvlayer.remote.feed import TOGETHER_MAX, together


def batch(keyspace: int, *names: bytes, at: int, called: int = 1) -> ValueBatch:
    return ValueBatch(
        keys=[raw_key(keyspace, name) for name in names],
        values=[b"v\x00"] * len(names),
        timestamps=[Timestamp(at)] * len(names),
        commit_called_ns=called,
    )


def test_neighbours_of_a_raw_keyspace_become_one() -> None:
    checkpoint = Checkpoint((keyspace_span(7),), Timestamp(30))
    events: list[Event] = [
        batch(7, b"a", at=10),
        batch(7, b"b", b"a", at=20, called=2),
        checkpoint,
        batch(7, b"a", at=40),
        batch(8, b"a", at=50),
    ]
    first, second, *rest = together(events)
    assert first == ValueBatch(
        keys=[raw_key(7, name) for name in (b"a", b"b", b"a")],
        values=[b"v\x00"] * 3,
        timestamps=[Timestamp(10), Timestamp(20), Timestamp(20)],
        commit_called_ns=1,
    )
    assert second is checkpoint
    assert rest == events[3:]


def test_rows_before_stay_beside_their_versions() -> None:
    plain = batch(7, b"a", at=10)
    known = ValueBatch(
        keys=plain.keys, values=plain.values, timestamps=plain.timestamps, previous=[b"u\x00"]
    )
    (both,) = together([known, known])
    assert isinstance(both, ValueBatch)
    assert both.previous == [b"u\x00"] * 2
    assert list(together([known, plain])) == [known, plain]


def test_one_batch_is_bounded() -> None:
    events = [batch(7, b"a", at=at) for at in range(1, 3 * TOGETHER_MAX + 1)]
    assert [len(each) for each in together(events) if isinstance(each, ValueBatch)] == [
        TOGETHER_MAX, TOGETHER_MAX, TOGETHER_MAX,
    ]  # fmt: skip


def test_batches_of_tables_stay_apart() -> None:
    row = ValueBatch(keys=[b"t0000row"], values=[b""], timestamps=[Timestamp(1)])
    assert list(together([row, row])) == [row, row]
