"""Mirrors as read-only databases of the Postgres door."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from tests.harness.pg_door import PgDoor, WireError, pg_door


async def fed(door: PgDoor) -> None:
    session = door.node.session()
    await session.execute(
        "CREATE TABLE orders (id INT8 PRIMARY KEY, note STRING, price DECIMAL(8,2));"
        "INSERT INTO orders VALUES (1, 'first', 1.50), (2, NULL, 2.25);"
        "CREATE CHANGEFEED FOR orders INTO 'duckdb:///shop.duckdb';"
        "CREATE USER ada; CREATE USER bob; GRANT SELECT ON orders TO ada"
    )
    await session.close()
    await asyncio.wait_for(door.node.wait_for_mirror("shop.duckdb", None), 20)


def with_mirror(scenario: Callable[[PgDoor], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pg_door() as door:
            await fed(door)
            await scenario(door)

    asyncio.run(run())


def test_a_mirror_is_read_in_duckdbs_sql_by_both_protocols() -> None:
    async def scenario(door: PgDoor) -> None:
        client = await door.client(user="ada", database="mirror:shop")
        assert await client.query("SELECT id, note, price FROM orders ORDER BY ALL") == [
            ("1", "first", "1.50"), ("2", None, "2.25"),
        ]  # fmt: skip
        both = "FROM orders SELECT count(*); SELECT list(id ORDER BY id) FROM orders;"
        assert await client.query(both) == [("2",), ("{1,2}",)]
        assert await client.query("SHOW timezone; SELECT 1 AS a, 2 AS a") == [("UTC",), ("1", "2")]
        where = f"host=127.0.0.1 port={door.port} user=ada dbname=mirror:shop"
        async with await psycopg.AsyncConnection.connect(where) as connection:
            found = await connection.execute(
                "SELECT note, price FROM orders WHERE id = %s", (1,), binary=True
            )
            assert found.description is not None
            assert [each.name for each in found.description] == ["note", "price"]
            assert str(await found.fetchall()) == "[('first', Decimal('1.50'))]"
            session = door.node.session()
            await session.execute("INSERT INTO orders VALUES (3, 'third', 0)")
            await session.close()
            await asyncio.wait_for(door.node.wait_for_mirror("shop.duckdb", None), 20)
            counted = await connection.execute("SELECT count(*) FROM orders")
            assert await counted.fetchall() == [(3,)], "as READ COMMITTED, though it is open"

    with_mirror(scenario)


REFUSED = {
    "INSERT INTO orders VALUES (9)": "25006",
    "DELETE FROM orders": "25006",
    "CREATE TABLE t (a INT)": "25006",
    "COPY orders TO '/tmp/stolen'": "25006",
    "USE defaultdb": "25006",
    "SELECT 1; DROP TABLE orders": "25006",
    "SELECT * FROM read_csv('/etc/passwd')": "42501",
    "SELECT * FROM system.users": "42P01",
    "SHOW JOBS": "42P01",
    "SET ROLE root": "42601",
    "SELEC 1": "42601",
    "SELECT $1": "08P01",
}


def test_nothing_but_the_mirror_is_reached() -> None:
    async def scenario(door: PgDoor) -> None:
        client = await door.client(user="ada", database="mirror:shop")
        for text, sqlstate in REFUSED.items():
            with pytest.raises(WireError) as refused:
                await client.query(text)
            assert (text, refused.value.sqlstate) == (text, sqlstate), refused.value
        await client.query("BEGIN")
        with pytest.raises(WireError):
            await client.query("SELECT nothing")
        with pytest.raises(WireError) as failed:
            await client.query("SELECT 1")
        assert failed.value.sqlstate == "25P02"
        await client.query("ROLLBACK")
        assert await client.query("SELECT count(*) FROM orders") == [("2",)]

    with_mirror(scenario)


PSQL_DESCRIBES = (
    "SELECT c.relname, pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c",
    "SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relname OPERATOR(pg_catalog.~) '^(orders)$'",
)


def test_psqls_questions_to_postgresqls_catalogs_are_told_what_to_ask_instead() -> None:
    async def scenario(door: PgDoor) -> None:
        client = await door.client(user="ada", database="mirror:shop")
        for text in PSQL_DESCRIBES:
            with pytest.raises(WireError) as refused:
                await client.query(text)
            assert "DESCRIBE" in refused.value.fields["H"]
        assert ("orders",) in await client.query("SHOW TABLES")
        assert [row[0] for row in await client.query("DESCRIBE orders")][:3] == [
            "id",
            "note",
            "price",
        ]

    with_mirror(scenario)


def test_who_may_not_read_a_mirror_hears_the_same_of_one_that_is_not_there() -> None:
    async def scenario(door: PgDoor) -> None:
        told = []
        for name in ("shop", "shop.duckdb", "absent", "../shop"):
            client = await door.connect()
            client.startup(user="bob", database=f"mirror:{name}")
            kind, body = await client.frame()
            while kind != b"E":
                kind, body = await client.frame()
            told.append(WireError(body).sqlstate)
        assert told == ["42501"] * 4
        ada = await door.client(user="ada", database="mirror:shop")
        root = door.node.session()
        await root.execute("REVOKE SELECT ON orders FROM ada")
        with pytest.raises(WireError) as refused:
            await ada.query("SELECT 1")
        assert refused.value.sqlstate == "42501", "the right ends with its session alive"
        await root.close()

    with_mirror(scenario)
