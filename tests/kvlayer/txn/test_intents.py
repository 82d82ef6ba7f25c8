"""Keys that bear intents, in memory."""

from __future__ import annotations

import gc
from random import Random

from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.dealt_keys import PIECES, WHOLE_MAX, DealtKeys
from tailrace.kvlayer.txn.intent_table import IntentTable
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
    intents.rewritten.put([A], 5)
    intents.rewritten.put([D], 6)
    intents.drop_last([D])
    assert list(intents.rewritten.items()) == [(A, 5)]


def test_no_dictionary_of_many_keys_is_large() -> None:
    table = IntentTable()
    record = TransactionRecord(bytes(16), Timestamp(1), heartbeat_at=0.0)
    keys = [b"%08d" % number for number in range(100 * PIECES)]
    table.add(record, 1, keys)
    assert len(table) == len(keys)
    assert max(map(len, table._ids._pieces)) < 300
    table.check_invariants()
    record.intents.drop_first(keys)
    table.remove(record, keys)
    assert not table.holders


def test_dealt_keys_are_a_dictionary() -> None:
    """Whether they are one piece or many, and while they become many."""
    random, dealt, known = Random(1), DealtKeys[int](), dict[bytes, int]()
    names = [b"%d" % number for number in range(2 * WHOLE_MAX)]
    for number in range(300):
        portion = random.sample(names, 50)
        changed = [name for name in portion if known.get(name) != number % 3]
        assert dealt.put(portion, number % 3) == changed
        known |= dict.fromkeys(portion, number % 3)
        for name in random.sample(names, 10):
            assert dealt.get(name) == known.get(name)
            assert dealt.among((name,)) == ([name] if name in known else [])
            assert dealt.pop(name) == known.pop(name, None)
        assert len(dealt) == len(known)
    assert dict(dealt.items()) == known


def test_the_collector_passes_over_keys_with_intents() -> None:
    """Python's collector would walk millions of keys in one step."""
    table = IntentTable()
    record = TransactionRecord(bytes(16), Timestamp(1), heartbeat_at=0.0)
    for start in range(0, 2 * WHOLE_MAX, 100):
        table.add(record, 1, [b"%08d" % number for number in range(start, start + 100)])
    gc.collect()
    assert not any(map(gc.is_tracked, table._ids._pieces))
    assert not any(gc.is_tracked(run.keys) for run in record.intents._runs)
