"""Whatever a client piles up on a connection has a bound, and goes with the connection."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from struct import pack

import pytest

from tailrace.api.pgwire import extended
from tailrace.api.pgwire.channel import Channel
from tailrace.api.pgwire.conversation import Conversation
from tailrace.sql import Session
from tailrace.sql.runtime import transactions
from tailrace.sql.session import cursors, prepared_names
from tests.harness.pg_door import PgDoor, WireClient, WireError, pg_door

BOUND = 4


def at_door(work: Callable[[PgDoor, WireClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pg_door() as door:
            await work(door, await door.client())

    asyncio.run(run())


async def refused(client: WireClient, text: str) -> str:
    with pytest.raises(WireError) as caught:
        await client.query(text)
    return caught.value.sqlstate


def test_prepared_statements_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_names, "NAMES_MAX", BOUND)

    async def work(door: PgDoor, client: WireClient) -> None:
        for number in range(BOUND):
            await client.query(f"PREPARE s{number} AS SELECT {number}")
        assert await refused(client, "PREPARE more AS SELECT 1") == "53400"
        client.send(b"P", b"more\0SELECT 1\0\0\0")
        client.send(b"S")
        frames = await client.until_ready()
        assert WireError(frames[0][1]).sqlstate == "53400"
        await client.query("DEALLOCATE s0")
        await client.query("PREPARE more AS SELECT 1")

    at_door(work)


def test_what_sql_deallocates_leaves_nothing_at_the_door() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        for number in range(20):
            client.send(b"P", f"s{number}\0SELECT {number}\0".encode() + pack("!H", 0))
            client.send(b"S")
            await client.until_ready()
            await client.query(f"DEALLOCATE s{number}")
        [(_, conversation)] = door.server._conversations.values()
        assert len(conversation._extended._statements) <= 2

    at_door(work)


def test_portals_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extended, "PORTALS_MAX", BOUND)

    async def work(door: PgDoor, client: WireClient) -> None:
        for again in range(2):
            client.send(b"P", b"\0SELECT 1\0\0\0")
            for number in range(BOUND + again):
                client.send(b"B", f"p{number}\0\0".encode() + bytes(6))
            client.send(b"S")
            frames = await client.until_ready()
            assert (frames[-2][0] == b"E") is bool(again), "they end with their transaction"
        assert WireError(frames[-2][1]).sqlstate == "53400"

    at_door(work)


def test_cursors_and_savepoints_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "CURSORS_MAX", BOUND)
    monkeypatch.setattr(transactions, "SAVEPOINTS_MAX", BOUND)

    async def work(door: PgDoor, client: WireClient) -> None:
        for text, sqlstate in (
            ("DECLARE c{} CURSOR FOR SELECT 1", "53400"),
            ("SAVEPOINT s{}", "54000"),
        ):
            await client.query("BEGIN")
            for number in range(BOUND):
                await client.query(text.format(number))
            assert await refused(client, text.format("more")) == sqlstate
            await client.query("ROLLBACK")

    at_door(work)


def test_dropped_connections_leave_nothing_in_memory() -> None:
    """Whether they have said nothing, half of it, or have a transaction open."""

    async def work(door: PgDoor, client: WireClient) -> None:
        before = len(_alive(Channel, Conversation, Session))  # those of other tests that failed
        for number in range(60):
            dropped = await door.connect()
            if number % 3:
                dropped.startup(user="root")
            if number % 3 == 2:
                await dropped.until_ready()
                await dropped.query("BEGIN; DECLARE c CURSOR FOR SELECT 1; PREPARE s AS SELECT 2")
            await dropped.close()
            door.forget(dropped)
        while door.server.connection_count > 1:
            await asyncio.sleep(0.001)
        await client.query("SELECT 1")
        async with asyncio.timeout(30):  # a transport lets go of its protocol some turns later
            while len(_alive(Channel, Conversation, Session)) > before:
                await asyncio.sleep(0.001)

    at_door(work)


def _alive(*kinds: type) -> list[type]:
    gc.collect()
    return [type(found) for found in gc.get_objects() if type(found) in kinds]
