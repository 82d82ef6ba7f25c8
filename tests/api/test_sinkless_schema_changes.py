"""What consumers of messages see of a schema change, on a feed without a sink."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from tailrace.api.node import Node

PATIENCE_SECONDS = 20.0

Message = tuple[object, ...]


@pytest.mark.parametrize("locked", [False, True], ids=["unlocked", "locked"])
@pytest.mark.parametrize("schema_feed", ["leasing", "rangefeed", "polling"])
def test_dropped_column_shows_the_rows_again(schema_feed: str, locked: bool) -> None:
    """CockroachDB's own case: a row of before, a column that goes, and a row of after."""

    async def main() -> list[Message]:
        node = await Node.open(":memory:")
        writer, reader = node.session(), node.session()
        lock = f"WITH (changefeed_optimized = {locked})"
        await writer.execute(f"CREATE TABLE t (a INT8 PRIMARY KEY, b STRING) {lock}")
        await writer.execute("INSERT INTO t VALUES (1, '1')")
        [feed] = await reader.execute(
            f"CREATE CHANGEFEED FOR TABLE t WITH schema_feed = '{schema_feed}'"
        )
        assert feed.stream is not None
        messages = await taken(feed.stream, 1)
        await writer.execute("ALTER TABLE t DROP COLUMN b")
        await writer.execute("INSERT INTO t VALUES (2)")
        messages += await taken(feed.stream, 2)
        await feed.stream.aclose()
        for session in (writer, reader):
            await session.close()
        await node.close()
        return messages

    first, *others = asyncio.run(main())
    assert first[1:] == (b"[1]", b'{"after":{"a":1,"b":"1"}}')
    assert {other[1:] for other in others} == {
        (b"[1]", b'{"after":{"a":1}}'),
        (b"[2]", b'{"after":{"a":2}}'),
    }


async def taken(stream: AsyncGenerator[Message, None], count: int) -> list[Message]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return [await anext(stream) for _ in range(count)]


def test_schema_changes_are_messages_of_their_own() -> None:
    """They stand between the rows under the one schema and those under the other."""

    async def main() -> list[Message]:
        node = await Node.open(":memory:")
        writer, reader = node.session(), node.session()
        await writer.execute("CREATE TABLE t (a INT8 PRIMARY KEY)")
        await writer.execute("INSERT INTO t VALUES (1)")
        [feed] = await reader.execute("CREATE CHANGEFEED FOR TABLE t WITH schema_events")
        assert feed.stream is not None
        messages = await taken(feed.stream, 1)
        await writer.execute("ALTER TABLE t SET (changefeed_optimized = true)")
        await writer.execute("ALTER TABLE t ADD COLUMN b STRING")
        await writer.execute("INSERT INTO t VALUES (2, 'x')")
        messages += await taken(feed.stream, 2)
        await feed.stream.aclose()
        for session in (writer, reader):
            await session.close()
        await node.close()
        return messages

    first, change, last = asyncio.run(main())
    assert (first[1], last[1]) == (b"[1]", b"[2]")
    assert change[:2] == ("t", None)
    assert isinstance(change[2], bytes)
    said = json.loads(change[2])
    a = {"name": "a", "nullable": False, "type": "INT8"}
    b = {"name": "b", "nullable": True, "type": "STRING"}
    assert said["schema_change"] == {
        "kinds": ["ADD_COLUMN"],
        "before": {"table": "t", "primary_key": ["a"], "columns": [a]},
        "after": {"table": "t", "primary_key": ["a"], "columns": [a, b]},
    }
    assert "." in said["updated"]
