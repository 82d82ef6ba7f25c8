"""Schema registries: what a feed asks of one, and how often."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.changefeed.encode import RegisteredSchema
from tailrace.changefeed.sinks import SinkError, SinkRefused, registry
from tailrace.changefeed.sinks.http.address import INSECURE_HTTP, PRIVATE_ADDRESSES
from tailrace.changefeed.sinks.http.client import Answer
from tailrace.changefeed.sinks.registry import SchemaRegistry
from tailrace.kvlayer.settings import Settings
from tests.harness.simulation import Simulation
from tests.harness.webhook_receiver import WebhookReceiver


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


@pytest.mark.parametrize(
    ("status", "kind"), [(401, SinkError), (404, SinkError), (409, SinkRefused), (422, SinkRefused)]
)
def test_only_what_is_said_of_a_schema_ends_a_feed(status: int, kind: type[Exception]) -> None:
    """A registry that does not know its client any more may know it again."""

    async def scenario() -> None:
        settings = Settings()
        for setting in (PRIVATE_ADDRESSES, INSECURE_HTTP):
            settings.set(setting.name, "true")
        asked = SchemaRegistry(f"http://app:kanari@{receiver.address}", settings)
        with pytest.raises(kind, match=f"subject rows: {status} "):
            await asked.give_ids([RegisteredSchema("rows", "{}")])
        await asked.close()

    with WebhookReceiver() as receiver:
        receiver.status = status
        asyncio.run(scenario())
