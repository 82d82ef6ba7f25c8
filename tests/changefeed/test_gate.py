"""The gate answers with what is canonical where, and forgets events only behind progress."""

from __future__ import annotations

from tailrace.changefeed.gate import SchemaGate
from tailrace.kvlayer.clock import Timestamp
from tests.changefeed.model import ModelSchema
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation

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


def test_events_are_consumed_behind_progress_only() -> None:
    async def scenario() -> None:
        gate, schema = gate_with_events()
        gate.try_prove(V1.id, Timestamp(150))
        gate.consume(Timestamp(119))
        answer = schema.try_peek(V1.id, Timestamp(150))
        assert answer is not None
        assert len(answer.events) == 2
        gate.consume(Timestamp(120))
        answer = schema.try_peek(V1.id, Timestamp(150))
        assert answer is not None
        assert [event.after.version for event in answer.events] == [3]
        proof = gate.try_prove(V1.id, Timestamp(150))
        assert proof is not None
        assert [segment.descriptor.version for segment in proof.segments] == [2, 3]

    Simulation(1).run(scenario())
