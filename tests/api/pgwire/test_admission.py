"""How many connections the Postgres door takes, of whom, and what the others are told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from tailrace.api.admission import Bounds
from tailrace.api.pgwire import PostgresOptions
from tailrace.api.pgwire.authentication import Method
from tailrace.api.tls import server_context
from tests.harness.certificates import certificate
from tests.harness.pg_door import PgDoor, WireError, pg_door

SMALL = Bounds(known=8, unknown=6, unknown_per_address=3, kept_for_admins=2)


TRUSTING = PostgresOptions(method=Method.TRUST, bounds=SMALL)


def at_door(work: Callable[[PgDoor], Awaitable[None]], options: PostgresOptions = TRUSTING) -> None:
    async def run() -> None:
        async with pg_door(options) as door:
            session = door.node.session()
            await session.execute("CREATE USER ada; CREATE USER eve; CREATE USER bob")
            await session.close()
            await work(door)

    asyncio.run(run())


async def refusal(door: PgDoor, user: str) -> WireError:
    client = await door.connect()
    client.startup(user=user)
    kind, body = await client.frame()
    assert kind == b"E"
    return WireError(body)


def test_silent_sockets_exclude_nobody() -> None:
    async def work(door: PgDoor) -> None:
        silent = [await door.connect() for _ in range(50)]
        assert await (await door.client("ada")).query("SELECT 1") == [("1",)]
        told = await silent[0].ended()
        assert b"53300" in told
        assert door.node.store.metrics.get("pgwire_connections_yielded_total") >= 47
        assert door.server.connection_count <= SMALL.unknown_per_address + 1

    at_door(work)


def test_a_crowd_is_told_53300_before_tls(tmp_path: Path) -> None:
    """In the clear, where a client that will ask for TLS reads it; inside of TLS, where it has."""
    cert, key = certificate(tmp_path)
    options = PostgresOptions(tls=server_context(cert, key), tls_only=True, bounds=SMALL)

    async def work(door: PgDoor) -> None:
        first, second = await door.connect(), await door.connect()
        second.raw(bytes.fromhex("0000000804d2162f"))
        assert await second.reader.readexactly(1) == b"S"
        trusted = ssl.create_default_context(cafile=str(cert))
        await second.writer.start_tls(trusted, server_hostname="127.0.0.1")
        for _ in range(SMALL.unknown_per_address):
            await door.connect()
        for told in (first, second):
            assert WireError((await told.frame())[1]).sqlstate == "53300"

    at_door(work, options)


def test_one_user_leaves_room_for_others() -> None:
    async def work(door: PgDoor) -> None:
        for _ in range(SMALL.per_user):
            await door.client("ada")
        assert (await refusal(door, "ada")).sqlstate == "53300"

    at_door(work)


def test_places_are_kept_for_admins() -> None:
    async def work(door: PgDoor) -> None:
        first = await door.client("ada")
        for user in ("ada", "ada", "eve", "eve", "bob"):
            await door.client(user)
        assert (await refusal(door, "bob")).fields["M"] == "sorry, too many clients already"
        for _ in range(SMALL.kept_for_admins):
            await door.client("root")
        assert (await refusal(door, "root")).sqlstate == "53300"
        await first.close()
        door.forget(first)
        while door.server.connection_count > SMALL.known - 1:
            await asyncio.sleep(0)
        await door.client("root")

    at_door(work)
