"""What is told of a schema change while it runs: where it is, and whom it waits for."""

from __future__ import annotations

import asyncio

from tailrace.catalog.descriptors.elements import Index
from tailrace.catalog.schema_change.payload import SchemaChangeProgress, schema_change
from tailrace.catalog.schema_change.status import status_of
from tailrace.catalog.schema_change.targets import IndexElement, Target
from tests.harness.descriptors import table
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node, sql_services

CHANGES = (
    "SELECT table_name, state, stage, doing, undoing, waiting_for, waiting_since > 0"
    " FROM tailrace_internal.schema_changes"
)


def test_a_change_says_whom_it_waits_for() -> None:
    async def scenario() -> None:
        async with sql_node(sim) as first, sql_services(sim, first.store, 2) as second:
            await first.sql("CREATE TABLE t (k INT8 PRIMARY KEY)")
            await second.sql("BEGIN; SELECT * FROM t")
            altering = asyncio.create_task(first.sql("ALTER TABLE t ADD COLUMN v INT8 DEFAULT 1"))
            await asyncio.sleep(0.5)
            watcher = first.session()
            [(name, state, stage, doing, undoing, waiting_for, since)] = (
                await watcher.execute(CHANGES)
            )[0].fetch_rows()
            assert (name, state, stage, undoing, since) == ("t", "running", 2, False, True)
            assert doing == "version: column v (2) -> write-only"
            assert "node 2" in str(waiting_for)
            await second.sql("COMMIT")
            await altering
            assert (await watcher.execute(CHANGES))[0].fetch_rows() == []
            await watcher.close()

    sim = Simulation(seed=5)  # by which the first node takes the job, and so waits
    sim.run(scenario())


def test_status_counts_stages_and_rows() -> None:
    before = table()
    index = Index(id=before.next_index_id, name="by_v", columns=(2,), suffix=before.primary_key)
    change = schema_change(before, [Target(IndexElement(index=index))], first=1)
    backfilling = SchemaChangeProgress(stage=2, row_count=12_000)
    assert str(status_of(change, backfilling)) == (
        "stage 3 of 4: work: index by_v (2) -> backfilled and validated (12,000 rows)"
    )
    undone = SchemaChangeProgress(stage=2, failure=("23505", "twice"), undone=0)
    assert str(status_of(change, undone)).startswith("undoing, stage 1 of ")
    assert str(status_of(change, SchemaChangeProgress(stage=4))) == "done"
