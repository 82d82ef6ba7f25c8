"""Scenarios in text: a command, what comes of it.

    add column w          the statement
    ----
    v3 (k, v, w)          the version that it published
    waits                 whether a row of that moment is answered at once ("fast") or waits

`pop` and `peek` print the events, the canonical version, and the same. TAILRACE_REWRITE=1 in the
environment writes what came instead of comparing it: review it as a diff.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tailrace.catalog.descriptors.descriptor import DescriptorState, TableDescriptor
from tailrace.catalog.values.errors import SQLError
from tailrace.schemafeed import (
    LeasingSchemaFeed,
    PollingSchemaFeed,
    SchemaAnswer,
    TableDropped,
    describe,
)
from tests.harness.nodes import CatalogFixture, Node, open_nodes
from tests.harness.simulation import Simulation

FILES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


class Scenario:
    """One table and the leasing schema feed over it."""

    def __init__(self, catalog: CatalogFixture, node: Node) -> None:
        self._catalog = catalog
        self._node = node
        self._polling = PollingSchemaFeed(node.store, catalog.descriptors)
        self._feed = LeasingSchemaFeed(node.leases, self._polling)
        self._id = 0

    async def run(self, command: str) -> str:
        try:
            printed = await self._run(command.split())
        except SQLError as error:
            return f"error {error.sqlstate}: {error.message}"
        except TableDropped as dropped:
            return f'table "{dropped.name}" was dropped'
        await asyncio.sleep(0.05)  # notices arrive
        try:
            at_once = self._feed.try_peek(self._id, self._catalog.store.clock.now())
        except TableDropped:
            return printed
        return f"{printed}\n{'waits' if at_once is None else 'fast'}"

    async def _run(self, words: list[str]) -> str:
        match words:
            case ["create", *options]:
                table = await self._catalog.create(locked=options == ["locked"])
                self._id = table.id
                await self._feed.start([table.id], self._catalog.store.clock.now())
                return shape(table)
            case ["peek"]:
                now = self._catalog.store.clock.now()
                return printed_answer(await self._feed.peek(self._id, now))
            case ["pop"]:
                now = self._catalog.store.clock.now()
                return printed_answer(await self._feed.pop(self._id, now))
        await self._node.leases.wait_for_one_version(self._id, timeout=5)
        return shape(await self._change(words))

    async def _change(self, words: list[str]) -> TableDescriptor:
        publish, id = self._catalog.publish, self._id
        columns = (await self._catalog.read(id)).columns
        match words:
            case ["lock" | "unlock" as verb]:
                return await publish(id, locked=verb == "lock")
            case ["add", "column", name]:
                return await self._catalog.add_column(id, name)
            case ["drop", "column", name]:
                return await publish(id, columns=tuple(c for c in columns if c.name != name))
            case ["rename", "column", old, new]:
                renamed = [replace(c, name=new) if c.name == old else c for c in columns]
                return await publish(id, columns=tuple(renamed))
            case ["rename", "table", name]:
                return await publish(id, name=name)
            case ["drop", "table"]:
                return await publish(id, state=DescriptorState.DROPPED)
        raise ValueError(f"no such command: {' '.join(words)}")

    async def close(self) -> None:
        await self._feed.close()


def shape(table: TableDescriptor) -> str:
    columns = ", ".join(column.name for column in table.columns)
    return f"v{table.version} ({columns})" + " locked" * table.locked + " dropped" * table.dropped


def printed_answer(answer: SchemaAnswer) -> str:
    events = [
        f"v{event.before.version}->v{event.after.version} {describe(event.kinds)}"
        for event in answer.events
    ]
    return "\n".join([*events, shape(answer.canonical)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    """See the file."""
    sim = Simulation(1)
    written: list[str] = []

    async def scenario() -> None:
        async with open_nodes(sim, 2) as (catalog, [node, _]):
            running = Scenario(catalog, node)
            for block in path.read_text().strip().split("\n\n"):
                command, separator, _ = block.partition("\n----\n")
                if separator:
                    block = f"{command}\n----\n{await running.run(command)}"
                written.append(block)
            await running.close()

    sim.run(scenario())
    text = "\n\n".join(written) + "\n"
    if os.environ.get("TAILRACE_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()
