"""Keys that bear intents, in memory."""

from __future__ import annotations

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.txn.intent_table import PIECES, IntentTable
from tailrace.kvlayer.txn.intents import Intents
from tailrace.kvlayer.txn.record import TransactionRecord

A, B, C, D = b"a", b"b", b"c", b"d"


def written() -> Intents:
    intents = Intents()
    intents.append(1, [A, B])
    intents.append(3, [C, D])
    return intents


def test_the_end_takes_keys_off_the_first_run() -> None:
    intents = written()
    assert intents.first(3) == [A, B, C]
    intents.drop_first([A, B, C])
    assert (list(intents), len(intents)) == ([D], 1)


def test_a_savepoint_takes_keys_off_the_last_run() -> None:
    intents = written()
    assert intents.last(1, after=1) == [D]
    assert intents.last(9, after=1) == [C, D]
    assert intents.last(3, after=0) == [B, C, D]
    assert intents.last(9, after=3) == []
    intents.drop_last([B, C, D])
    assert (list(intents), len(intents)) == ([A], 1)


def test_what_is_resolved_is_not_rewritten() -> None:
    intents = written()
    intents.rewritten = {A: 5, D: 6}
    intents.drop_last([D])
    assert intents.rewritten == {A: 5}


def test_no_dictionary_of_many_keys_is_large() -> None:
    table = IntentTable()
    record = TransactionRecord(bytes(16), Timestamp(1), heartbeat_at=0.0)
    keys = [b"%08d" % number for number in range(100 * PIECES)]
    table.add(record, 1, keys)
    assert len(table) == len(keys)
    assert max(map(len, table._pieces)) < 300
    table.check_invariants()
    record.intents.drop_first(keys)
    table.remove(record, keys)
    assert not table.holders
