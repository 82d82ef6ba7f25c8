"""Sessions that pass for CockroachDB's, so that its drivers' modes work."""

from __future__ import annotations

import asyncio

import psycopg
from psycopg.crdb import AsyncCrdbConnection
from psycopg.types.json import Jsonb

from tests.harness.pg_door import pg_door

COMPAT = "-c crdb_compat=on"


def test_psycopg_finds_cockroachdb() -> None:
    async def main() -> None:
        async with pg_door() as door:
            address = f"host=127.0.0.1 port={door.port} user=root dbname=defaultdb sslmode=disable"
            connection = await AsyncCrdbConnection.connect(address, options=COMPAT)
            async with connection:
                assert connection.info.vendor == "CockroachDB"
                assert connection.info.server_version == 240300
                found = await (await connection.execute("SELECT version()")).fetchone()
                assert found is not None
                assert str(found[0]).startswith("CockroachDB CCL v24.3.0")
                await connection.execute("CREATE TABLE t (k INT8 PRIMARY KEY, doc JSONB)")
                await connection.execute("INSERT INTO t VALUES (%s, %s)", (1, Jsonb({"a": 1})))
                found = await (await connection.execute("SELECT * FROM t")).fetchone()
                assert found == (1, {"a": 1})

    asyncio.run(main())


def test_without_it_the_server_is_postgres() -> None:
    async def main() -> None:
        async with pg_door() as door:
            client = await door.client()
            assert "crdb_version" not in client.status
            [(version,)] = await client.query("SELECT version()")
            assert str(version).startswith("PostgreSQL")
            await client.query("SET crdb_compat = on")
            [(version,)] = await client.query("SELECT version()")
            assert str(version).startswith("CockroachDB")
            given = await door.client(crdb_compat="on")
            assert given.status["crdb_version"].startswith("CockroachDB")

    asyncio.run(main())


def test_crdb_mode_is_refused_elsewhere() -> None:
    async def main() -> None:
        async with pg_door() as door:
            address = f"host=127.0.0.1 port={door.port} user=root dbname=defaultdb sslmode=disable"
            connection = await psycopg.AsyncConnection.connect(address)
            async with connection:
                assert connection.info.vendor == "PostgreSQL"

    asyncio.run(main())
