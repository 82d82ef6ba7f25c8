"""The gate answers with what is canonical where, and forgets events only behind progress."""

from __future__ import annotations

from tailrace.changefeed.pipeline.gate import SchemaGate
from tailrace.kvlayer.clock import Timestamp
from tests.changefeed.model import ModelSchema
from tests.harness.descriptors import table

V1 = table(1, 100, locked=True)
V2 = table(2, 120)
V3 = table(3, 140, locked=True)
TIMES = [Timestamp(ts) for ts in (150, 110, 119, 120, 121, 139, 140)]


def gate_with_events() -> tuple[SchemaGate, ModelSchema]:
    schema = ModelSchema(V1)
    schema.publish(V2)
    schema.publish(V3)
    return SchemaGate(schema), schema


def test_rows_fall_under_the_version_of_their_time() -> None:
    gate, _ = gate_with_events()
    proof = gate.try_prove(V1.id, Timestamp(150))
    assert proof is not None
    split = [(d.version, [TIMES[i] for i in inside]) for d, inside in proof.split(TIMES)]
    assert split == [(1, [110, 119]), (2, [120, 121, 139]), (3, [150, 140])]
    assert [proof.at(Timestamp(ts)).version for ts in (119, 120, 140)] == [1, 2, 3]


def test_unproven_time_is_no_proof() -> None:
    schema = ModelSchema(V1, fast=False)
    schema.prove(Timestamp(110))
    gate = SchemaGate(schema)
    assert gate.try_prove(V1.id, Timestamp(111)) is None
    proof = gate.try_prove(V1.id, Timestamp(110))
    assert proof is not None
    assert proof.upto == 110


def versions_at(gate: SchemaGate, upto: int) -> list[int]:
    proof = gate.try_prove(V1.id, Timestamp(upto))
    assert proof is not None
    return [segment.descriptor.version for segment in proof.segments]


def test_events_are_popped_as_soon_as_they_are_proven() -> None:
    """So that the lock behind them answers at once, however long the feed takes to resolve them."""
    gate, schema = gate_with_events()
    assert versions_at(gate, 150) == [1, 2, 3]
    answer = schema.try_peek(V1.id, Timestamp(150))
    assert answer is not None
    assert answer.events == ()
    assert versions_at(gate, 160) == [1, 2, 3]


def test_what_held_is_forgotten_behind_progress_only() -> None:
    gate, _ = gate_with_events()
    versions_at(gate, 150)
    gate.consume(V1.id, Timestamp(119))
    assert versions_at(gate, 150) == [1, 2, 3]
    gate.consume(V1.id, Timestamp(120))
    assert versions_at(gate, 150) == [2, 3]
    gate.consume(V1.id, Timestamp(150))
    assert versions_at(gate, 160) == [3]


def test_what_held_in_a_table_is_not_forgotten_behind_another_one() -> None:
    """A table that joined later, and reads its rows again, is behind the feed's resolved."""
    gate, _ = gate_with_events()
    versions_at(gate, 150)
    gate.consume(V1.id + 1, Timestamp(150))
    assert versions_at(gate, 150) == [1, 2, 3]


def test_a_replaced_row_is_read_as_of_just_before() -> None:
    """At the very time of a drop, the row that was replaced still had the column (#150952)."""
    gate, _ = gate_with_events()
    proof = gate.try_prove(V1.id, Timestamp(150))
    assert proof is not None
    assert (proof.at(Timestamp(120)).version, proof.before(Timestamp(120)).version) == (2, 1)
