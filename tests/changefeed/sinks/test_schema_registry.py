"""Schema registries: what a feed asks of one, and how often."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.changefeed.encode import RegisteredSchema
from tailrace.changefeed.sinks import registry
from tailrace.changefeed.sinks.http.client import Answer
from tailrace.changefeed.sinks.registry import SchemaRegistry
from tailrace.kvlayer.settings import Settings
from tests.harness.simulation import Simulation


class Client:
    """Stands for the connections to a registry, which take their time."""

    def __init__(self, *_: object, **__: object) -> None:
        self.opened = 0
        self.posted: list[str] = []

    async def open(self) -> None:
        await asyncio.sleep(0.001)
        self.opened += 1

    async def post(self, path: str, body: bytes) -> Answer:
        await asyncio.sleep(0.001)
        self.posted.append(path)
        return Answer(status=200, reason="OK", body=b'{"id":%d}' % len(self.posted))


def test_a_registry_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and resolved messages ask at the same time, and have a schema in common."""
    monkeypatch.setattr(registry, "PinnedClient", Client)
    rows, resolved = RegisteredSchema("rows", "{}"), RegisteredSchema("resolved", "{}")

    async def main() -> Client:
        asked = SchemaRegistry("http://registry.example", Settings())
        await asyncio.gather(asked.give_ids([rows, resolved]), asked.give_ids([resolved]))
        client = asked._client
        assert isinstance(client, Client)
        return client

    client = Simulation(1).run(main())
    assert client.opened == 1
    assert {rows.id, resolved.id} == {1, 2}
    assert sorted(client.posted) == ["/subjects/resolved/versions", "/subjects/rows/versions"]
