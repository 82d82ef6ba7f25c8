"""The enriched envelope through SQL."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tailrace.api.node import Node


def decoded(value: object) -> Any:
    assert isinstance(value, bytes), value
    return json.loads(value)


def test_enriched_messages_tell_what_happened() -> None:
    """Also without `diff`: the feed reads what a change replaced, to tell updates from inserts."""

    async def scenario() -> list[dict[str, Any]]:
        node = await Node.open(":memory:")
        try:
            writer, reader = node.session(), node.session()
            await writer.execute("CREATE TABLE foo (a INT8 PRIMARY KEY, b STRING)")
            await writer.execute("INSERT INTO foo VALUES (0, 'dog')")
            [feed] = await reader.execute(
                "CREATE CHANGEFEED FOR foo WITH envelope = 'enriched', "
                "enriched_properties = 'source'"
            )
            assert feed.stream is not None
            async with asyncio.timeout(20):
                rows = [await anext(feed.stream)]
                await writer.execute("UPDATE foo SET b = 'cat'")
                await writer.execute("DELETE FROM foo WHERE b = 'cat'")
                rows += [await anext(feed.stream) for _ in range(2)]
            await feed.stream.aclose()
            return [{"key": decoded(row[1]), **decoded(row[2])} for row in rows]
        finally:
            await node.close()

    messages = asyncio.run(scenario())
    assert [(each["op"], each["after"]) for each in messages] == [
        ("c", {"a": 0, "b": "dog"}),
        ("u", {"a": 0, "b": "cat"}),
        ("d", None),
    ]
    assert all(each["key"] == {"a": 0} for each in messages)
    source = messages[0]["source"]
    assert (source["database_name"], source["schema_name"], source["table_name"]) == (
        "defaultdb",
        "public",
        "foo",
    )
    assert (source["changefeed_sink"], source["job_id"]) == ("sinkless", "0")
