"""Scenarios in SQL: a statement, the versions that it published, and the events of the feed.

    ALTER TABLE t ALTER COLUMN a TYPE STRING                    the statement
    ----
    v2 (k#1, a#2) +a~3#3:delete-only index 1 building 2:...     a version: what shows, each with its
    ...                                                         id, what comes or goes, the primary
    v4 (k#1, a#3) +a~2#2:write-only index 2 leaving 1           index, and the next or the last one
    v3->v4 RETYPE_COLUMN                                        what a schema feed tells of it
    row (1, '10')                                               the rows as a feed reads them

Steps that are nothing to a feed (OTHER) are left out of the events. TAILRACE_REWRITE=1 in the
environment writes what came instead of comparing it: review it as a diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import ZERO
from tailrace.schemafeed import EventKind, RangeFeedSchemaFeed, describe
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

FILES = sorted((Path(__file__).parent / "testdata" / "statements").glob("*.txt"))


class Scenario:
    """One table `t`, whose first statement creates it, and a schema feed over it."""

    def __init__(self, node: SqlNode) -> None:
        self._node = node
        self._descriptors = node.services.catalog.descriptors
        self._feed = RangeFeedSchemaFeed(node.store, self._descriptors)
        self._id = 0
        self._known = 0

    async def run(self, statement: str) -> str:
        try:
            await self._node.sql(statement)
        except SQLError as error:
            return f"error {error.sqlstate}: {error.message}"
        now = self._node.store.clock.now()
        if not self._id:
            reader = self._node.store.snapshot(now)
            [table] = await self._node.services.catalog.list_tables(reader, "defaultdb")
            self._id = table.id
            await self._feed.start([table.id], now)
        versions = await self._descriptors.versions([self._id], ZERO, now)
        news, self._known = versions[self._known :], len(versions)
        answer = await self._feed.pop(self._id, now)
        events = [event for event in answer.events if event.kinds != EventKind.OTHER]
        lines = [_shape(table) for table in news if isinstance(table, TableDescriptor)]
        lines += [
            f"v{event.before.version}->v{event.after.version} {describe(event.kinds)}"
            for event in events
        ]
        rows = await self._rows(answer.canonical)
        return "\n".join([*lines, *rows])

    async def _rows(self, table: TableDescriptor) -> list[str]:
        """The rows as a feed reads them: out of the canonical primary index, by column id."""
        found = await self._node.store.snapshot(self._node.store.clock.now()).scan(
            table.primary_span
        )
        return [f"row {codec_for(table).decode_row(key, body)}" for key, body in found]

    async def close(self) -> None:
        if self._id:
            await self._feed.close()


def _shape(table: TableDescriptor) -> str:
    shown = ", ".join(f"{column.name}#{column.id}" for column in table.visible_columns)
    hidden = [column for column in table.columns if column not in table.visible_columns]
    words = [f"v{table.version} ({shown})"]
    words += [f"+{column.name}#{column.id}:{column.state.value}" for column in hidden]
    words.append(f"index {table.primary_index_id}")
    if table.new_primary is not None:
        words.append(f"building {table.new_primary.id}:{table.new_primary.state.value}")
    if table.old_primary is not None:
        words.append(f"leaving {table.old_primary.id}")
    return " ".join([*words, *["locked"] * table.locked])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_statements_become_versions_and_events(path: Path) -> None:
    """See the file."""
    sim = Simulation(1)
    written: list[str] = []

    async def scenario() -> None:
        async with sql_node(sim) as node:
            running = Scenario(node)
            for block in path.read_text().strip().split("\n\n"):
                statement, separator, _ = block.partition("\n----")
                if separator:
                    block = f"{statement}\n----\n{await running.run(statement)}".rstrip()
                written.append(block)
            await running.close()

    sim.run(scenario())
    text = "\n\n".join(written) + "\n"
    if os.environ.get("TAILRACE_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
