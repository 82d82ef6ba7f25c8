"""Real clients and the wide types: text and binary, both ways, and what catalogs say of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import sqlalchemy
from psycopg.types.json import Jsonb

from tests.harness.server_process import ServerProcess
from tests.system.test_pg_clients import connect, psql

pytestmark = pytest.mark.system

TABLE = (
    "CREATE TABLE w (id INT8 PRIMARY KEY DEFAULT nextval('numbers'), t TIME, i INTERVAL, j JSONB, "
    "n INT8[], s STRING[], u UUID[], m mood, ms mood[])"
)
VALUES: tuple[Any, ...] = (
    time(10, 30, 0, 5), timedelta(days=2, seconds=3600), {"a": [1, None, "x"]}, [1, None, 3],
    ["x", 'a,"b'], [UUID(int=7)], "ok", ["sad", "ok"],
)  # fmt: skip
COLUMNS = "t, i, j, n, s, u, m, ms"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("wide") / "data", "--insecure") as process:
        with connect(process) as client:
            client.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            client.execute("CREATE SEQUENCE numbers")
            client.execute(TABLE)
        yield process


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_back_what_it_wrote(server: ServerProcess, binary: bool) -> None:
    with connect(server) as client:
        given = (*VALUES[:2], Jsonb(VALUES[2]), *VALUES[3:])
        places = ", ".join(["%b" if binary else "%s"] * 6 + ["%s"] * 2)
        row = client.execute(
            f"INSERT INTO w ({COLUMNS}) VALUES ({places}) RETURNING id", given
        ).fetchone()
        assert row is not None
        cursor = client.cursor(binary=binary)
        found = cursor.execute(
            "SELECT t, i, j, n, s, u, m::STRING, ms::STRING[] FROM w WHERE id = %s", row
        ).fetchone()
        assert found == VALUES
        found = client.execute("SELECT m FROM w WHERE id = ANY(%s)", [[row[0]]]).fetchone()
        assert found == ("ok",)


def test_asyncpg_reads_back_what_it_wrote(server: ServerProcess) -> None:
    async def main() -> None:
        client = await asyncpg.connect(
            host="127.0.0.1", port=server.pg_port, user="root", database="defaultdb"
        )
        try:
            given = (*VALUES[:2], json.dumps(VALUES[2]), "ok")
            id = await client.fetchval(
                "INSERT INTO w (t, i, j, m) VALUES ($1, $2, $3, $4) RETURNING id", *given
            )
            row = await client.fetchrow("SELECT t, i, j, m FROM w WHERE id = $1", id)
            assert row is not None
            assert (*row[:2], json.loads(row[2]), row[3]) == (*VALUES[:3], "ok")
        finally:
            await client.close()

    asyncio.run(main())


async def asyncpg_to(server: ServerProcess) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", database="defaultdb"
    )


def test_asyncpg_reads_writes_and_asks_by_arrays(server: ServerProcess) -> None:
    moments = [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), None]
    rows: list[tuple[Any, ...]] = [
        (1, [1, None, -3], ["x", 'a,"b', None], [UUID(int=7), None], moments),
        (2, [], None, [], [None]),
        (3, None, ["NULL", ""], None, []),
    ]

    async def main() -> None:
        client = await asyncpg_to(server)
        try:
            await client.execute(
                "CREATE TABLE lists (id INT8 PRIMARY KEY, n INT8[], s TEXT[], u UUID[], "
                "z TIMESTAMPTZ[])"
            )
            await client.executemany("INSERT INTO lists VALUES ($1, $2, $3, $4, $5)", rows)
            found = await client.fetch("SELECT * FROM lists ORDER BY id")
            assert [tuple(row) for row in found] == rows
            for query, given in (
                ("SELECT id FROM lists WHERE id = ANY($1) ORDER BY id", [3, 1, 9]),
                ("SELECT id FROM lists WHERE id::TEXT = ANY($1::TEXT[]) ORDER BY id", ["1", "3"]),
            ):
                assert [row["id"] for row in await client.fetch(query, given)] == [1, 3]
            assert await client.fetchval("SELECT id FROM lists WHERE n = $1", [1, None, -3]) == 1
        finally:
            await client.close()

    asyncio.run(main())


def test_asyncpg_reads_and_writes_enumerations_by_their_own_type(server: ServerProcess) -> None:
    async def main() -> None:
        client = await asyncpg_to(server)
        try:
            await client.execute("DELETE FROM w")
            id = await client.fetchval(
                "INSERT INTO w (m, ms) VALUES ($1, $2) RETURNING id", "ok", ["sad", None]
            )
            statement = await client.prepare("SELECT m, ms FROM w WHERE id = $1 AND m = $2")
            (row,) = await statement.fetch(id, "ok")
            assert tuple(row) == ("ok", ["sad", None])
            assert [(a.name, a.type.name) for a in statement.get_attributes()] == [
                ("m", "mood"), ("ms", "mood[]"),
            ]  # fmt: skip
            assert statement.get_parameters()[1].name == "mood"
            assert await client.fetchval("SELECT id FROM w WHERE m = ANY($1)", ["ok"]) == id
            with pytest.raises(asyncpg.InvalidTextRepresentationError):
                await client.execute("INSERT INTO w (m) VALUES ($1)", "glad")
        finally:
            await client.close()

    asyncio.run(main())


def test_asyncpg_may_first_meet_an_enumeration_within_a_transaction(server: ServerProcess) -> None:
    """It turns `jit` off by set_config() before it asks what the type is."""

    async def main() -> None:
        client = await asyncpg_to(server)
        try:
            async with client.transaction():
                await client.execute("INSERT INTO w (id, m) VALUES (990, 'ok')")
                found = await client.fetchval("SELECT m FROM w WHERE id = $1", 990)
                assert found == "ok"
                await client.execute("DELETE FROM w WHERE id = 990")
            assert await client.fetchval("SELECT current_setting('jit')") == "off"
        finally:
            await client.close()

    asyncio.run(main())


@pytest.mark.parametrize("format", ["text", "csv", "binary"])
def test_copy_goes_both_ways(server: ServerProcess, format: str) -> None:
    with connect(server) as client:
        client.execute("DELETE FROM w")
        given = (*VALUES[:2], Jsonb(VALUES[2]), *VALUES[3:])
        client.execute(f"INSERT INTO w ({COLUMNS}) VALUES ({', '.join(['%s'] * 8)})", given)
        cursor = client.cursor()
        with cursor.copy(f"COPY w ({COLUMNS}) TO STDOUT WITH (FORMAT {format})") as out:
            data = b"".join(bytes(part) for part in out)
        with cursor.copy(f"COPY w ({COLUMNS}) FROM STDIN WITH (FORMAT {format})") as into:
            into.write(data)
        rows = client.execute(f"SELECT {COLUMNS.replace('ms', 'ms::STRING[]')} FROM w").fetchall()
        assert rows == [VALUES, VALUES]


def test_psql_shows_types_and_sequences(server: ServerProcess) -> None:
    shown = psql(server, "\\dT\n\\ds\n\\d w\n")
    assert "mood" in shown
    assert "public|numbers|sequence|root" in shown
    for line in ("t|time without time zone", "i|interval", "j|jsonb", "n|bigint[]", "m|mood"):
        assert line in shown, shown


def test_sqlalchemy_reflects_them(server: ServerProcess) -> None:
    engine = sqlalchemy.create_engine(
        f"postgresql+psycopg://root@127.0.0.1:{server.pg_port}/defaultdb"
    )
    try:
        inspector = sqlalchemy.inspect(engine)
        types = {column["name"]: str(column["type"]) for column in inspector.get_columns("w")}
        assert types["t"] == "TIME"
        assert types["i"] == "INTERVAL"
        assert types["j"] == "JSONB"
        assert types["n"] == "ARRAY"
        assert inspector.get_enums() == [  # type: ignore[attr-defined]
            {"name": "mood", "schema": "public", "visible": True, "labels": ["sad", "ok"]}
        ]
        assert inspector.get_sequence_names() == ["numbers"]
    finally:
        engine.dispose()
