"""Real clients of Postgres at a real server."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pg8000.native
import psycopg
import pytest
import sqlalchemy

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

ALL_TYPES = """
CREATE TABLE v (
    id INT8 PRIMARY KEY, b BOOL, f FLOAT8, p DECIMAL(12,3), s STRING, y BYTES,
    d DATE, t TIMESTAMP, z TIMESTAMPTZ, u UUID,
    i2 INT2, i4 INT4, f4 FLOAT4, vc VARCHAR(20), ch CHAR(4)
)
"""
ROW: tuple[Any, ...] = (
    -7, True, 0.1, Decimal("-12345.670"), "a\tb\\ü\n\"'", b"\x00\xff\\",
    date(1999, 12, 31), datetime(2001, 2, 3, 4, 5, 6, 789), datetime(1970, 1, 1, tzinfo=UTC),
    UUID("6f0d1c5e-0000-4000-8000-00000000002a"), -32768, 2147483647, -0.25, "varying", "four",
)  # fmt: skip
NULLS: tuple[Any, ...] = (8, *[None] * 14)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("pg") / "data", "--insecure") as process:
        yield process


def connect(server: ServerProcess, **options: Any) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb",
        autocommit=True, **options,
    )  # fmt: skip


@pytest.fixture
def client(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    with connect(server) as connection:
        for table in ("v", "t"):
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        connection.execute(ALL_TYPES)
        connection.execute("CREATE TABLE t (id INT8 PRIMARY KEY, n INT8 NOT NULL)")
        yield connection


def psql(server: ServerProcess, script: str) -> str:
    found = shutil.which("psql")
    if found is None:
        pytest.skip("psql is not installed")
    command = [found, "-XAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "root"]
    command += ["-p", str(server.pg_port), "-d", "defaultdb"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_reads_back_every_type_it_wrote(
    client: psycopg.Connection[Any], binary: bool
) -> None:
    cursor = client.cursor(binary=binary)
    form = "%b" if binary else "%t"
    places = ", ".join([form] * len(ROW))
    for row in (ROW, NULLS):
        cursor.execute(f"INSERT INTO v VALUES ({places})", row)
    assert cursor.execute("SELECT * FROM v ORDER BY id").fetchall() == [ROW, NULLS]
    assert cursor.execute("SELECT * FROM v WHERE id = -7").fetchall() == [ROW]


def test_asyncpg_reads_back_every_type_it_wrote(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=server.pg_port, user="root", database="defaultdb"
        )
        places = ", ".join(f"${number}" for number in range(1, len(ROW) + 1))
        await connection.executemany(f"INSERT INTO v VALUES ({places})", [ROW, NULLS])
        found = await connection.fetch("SELECT * FROM v ORDER BY id")
        assert [tuple(row) for row in found] == [ROW, NULLS]
        async with connection.transaction():
            rows = [row["id"] async for row in connection.cursor("SELECT id FROM v", prefetch=1)]
        assert sorted(rows) == [-7, 8]
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute("INSERT INTO v (id) VALUES (8)")
        copied = await connection.copy_records_to_table(
            "t", records=[(number, number) for number in range(2500)]
        )
        assert copied == "COPY 2500"
        await connection.close()

    asyncio.run(run())


def test_pg8000_runs_statements_with_parameters(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    connection = pg8000.native.Connection(
        "root", host="127.0.0.1", port=server.pg_port, database="defaultdb"
    )
    connection.run("INSERT INTO t VALUES (:id, :n)", id=1, n=5)
    connection.run("START TRANSACTION")
    connection.run("UPDATE t SET n = n + :by", by=2)
    connection.run("COMMIT")
    assert connection.run("SELECT n FROM t WHERE id = :id", id=1) == [[7]]
    connection.close()


def test_a_pipeline_of_psycopg_is_one_transaction(client: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation), client.pipeline():
        client.execute("INSERT INTO t VALUES (1, 1)")
        client.execute("INSERT INTO t VALUES (1, 1)")
    assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


@pytest.mark.parametrize("form", ["TEXT", "CSV, HEADER", "BINARY"])
def test_copy_out_and_in_again_changes_nothing(client: psycopg.Connection[Any], form: str) -> None:
    places = ", ".join(["%s"] * len(ROW))
    for row in (ROW, NULLS):
        client.execute(f"INSERT INTO v VALUES ({places})", row)
    cursor = client.cursor()
    with cursor.copy(f"COPY v TO STDOUT (FORMAT {form})") as copy:
        data = b"".join(bytes(part) for part in copy)
    client.execute("DELETE FROM v")
    with cursor.copy(f"COPY v FROM STDIN (FORMAT {form})") as copy:
        for start in range(0, len(data), 7):
            copy.write(data[start : start + 7])
    assert client.execute("SELECT * FROM v ORDER BY id").fetchall() == [ROW, NULLS]


def test_a_bad_row_is_named_and_nothing_of_its_copy_remains(
    client: psycopg.Connection[Any],
) -> None:
    rows = [f"{number}\t{number}\n" for number in range(5000)]
    rows[4200] = "4200\tmany\n"
    with pytest.raises(psycopg.Error) as caught, client.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write("".join(rows))
    assert caught.value.sqlstate == "22P02"
    assert caught.value.diag.message_detail == 'COPY t, line 4201, column n: "many".'
    assert client.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_psql_copies_flights_there_and_back(server: ServerProcess, tmp_path: Path) -> None:
    rows = 20_000
    for form, name in (("csv", "f.csv"), ("binary", "f.bin")):
        source, target = tmp_path / name, tmp_path / f"back-{name}"
        psql(server, "DROP TABLE IF EXISTS f; CREATE TABLE f (id INT8 PRIMARY KEY, at TIMESTAMP, "
             "carrier STRING, delay FLOAT8);")  # fmt: skip
        if form == "csv":
            lines = [f"{n},2013-01-01 05:{n % 60:02}:00,UA,{n / 4 if n % 9 else ''}\n"
                     for n in range(rows)]  # fmt: skip
            source.write_text("".join(lines))
        else:
            shutil.copy(tmp_path / "kept.bin", source)
        psql(server, f"\\copy f FROM '{source}' (FORMAT {form})\n")
        assert psql(server, "SELECT count(*) FROM f").strip() == str(rows)
        order = "(SELECT * FROM f ORDER BY id)"
        psql(server, f"\\copy {order} TO '{target}' (FORMAT {form})\n")
        psql(server, f"\\copy {order} TO '{tmp_path / 'kept.bin'}' (FORMAT binary)\n")
        back = target.read_bytes()
        same = source.read_bytes()
        assert back == same or back.decode().replace(".0,", ",") == same.decode().replace(".0", "")


def test_psql_speaks_of_errors_with_their_place(server: ServerProcess) -> None:
    found = shutil.which("psql")
    assert found is not None
    command = [found, "-X", "-h", "127.0.0.1", "-U", "root", "-p", str(server.pg_port)]
    done = subprocess.run(
        [*command, "-d", "defaultdb", "-c", "SELECT 1 FROM nowhere"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert 'ERROR:  relation "nowhere" does not exist' in done.stderr
    assert "LINE 1: SELECT 1 FROM nowhere" in done.stderr


@pytest.mark.parametrize("mode", ["simple", "extended", "prepared"])
def test_pgbench_runs_a_script(
    server: ServerProcess, client: psycopg.Connection[Any], tmp_path: Path, mode: str
) -> None:
    pgbench = shutil.which("pgbench") or "/usr/lib/postgresql/15/bin/pgbench"
    if not Path(pgbench).exists():
        pytest.skip("pgbench is not installed")
    client.execute("INSERT INTO t SELECT g, 0 FROM generate_series(0, 99) AS s(g)")
    script = tmp_path / "bench.sql"
    script.write_text(
        "\\set id random(0, 99)\nBEGIN;\nUPDATE t SET n = n + 1 WHERE id = :id;\n"
        "SELECT n FROM t WHERE id = :id;\nCOMMIT;\n"
    )
    done = subprocess.run(
        [pgbench, "-n", "-f", str(script), "-c", "2", "-t", "20", "-M", mode, "--max-tries", "20",
         "-h", "127.0.0.1", "-p", str(server.pg_port), "-U", "root", "defaultdb"],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PGDATABASE": "defaultdb"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "number of transactions actually processed: 40/40" in done.stdout
    assert client.execute("SELECT sum(n) FROM t").fetchone() == (40,)


def test_stream_sees_each_row_of_a_load_once_and_cancel_spares_the_connection(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    keys, versions = 20, 25
    seen: dict[bytes, list[int]] = {}
    resolved: list[str] = []

    def load() -> None:
        with connect(server) as writer:
            for version in range(versions):
                writer.execute(
                    "UPSERT INTO t SELECT g, %s FROM generate_series(0, %s) AS s(g)",
                    (version, keys - 1),
                )

    loading = threading.Thread(target=load)
    feed = client.cursor(binary=True)
    rows = feed.stream("EXPERIMENTAL CHANGEFEED FOR t WITH resolved = '10ms', updated")
    loading.start()
    for table, key, value in rows:
        change = json.loads(value)
        if table is None:
            assert key is None
            resolved.append(change["resolved"])
            if len(seen) == keys and all(len(found) == versions for found in seen.values()):
                break
            continue
        assert not resolved or Decimal(change["updated"]) > Decimal(resolved[-1])
        seen.setdefault(bytes(key), []).append(change["after"]["n"])
    loading.join()
    assert all(found == list(range(versions)) for found in seen.values())
    assert len(resolved) > 1
    client.cancel()
    with pytest.raises(psycopg.errors.QueryCanceled):
        for _ in rows:
            pass
    assert client.execute("SELECT count(*) FROM t").fetchone() == (keys,)


def test_sqlalchemy_runs_transactions_and_expressions(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    url = f"postgresql+psycopg://root@127.0.0.1:{server.pg_port}/defaultdb"
    engine = sqlalchemy.create_engine(url)
    table = sqlalchemy.table("t", sqlalchemy.column("id"), sqlalchemy.column("n"))
    with engine.begin() as connection:
        connection.execute(table.insert(), [{"id": number, "n": 2} for number in range(3)])
    with engine.connect() as connection:
        connection.execute(table.delete())
        connection.rollback()
        total = sqlalchemy.select(sqlalchemy.func.sum(table.c.n)).where(table.c.id > 0)
        assert connection.execute(total).scalar() == 4
    engine.dispose()


def test_a_pool_of_asyncpg_hands_connections_on(server: ServerProcess) -> None:
    async def run() -> None:
        pool = await asyncpg.create_pool(
            host="127.0.0.1", port=server.pg_port, user="root", database="defaultdb",
            min_size=1, max_size=1, server_settings={"application_name": "pool", "jit": "off"},
        )  # fmt: skip
        for _ in range(2):
            async with pool.acquire() as connection:
                assert await connection.fetchval("SELECT current_user") == "root"
                assert await connection.fetchval("SHOW application_name") == "pool"
        await pool.close()

    asyncio.run(run())


def test_a_cursor_of_asyncpg_skips_rows(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    client.execute("INSERT INTO t SELECT n, n FROM generate_series(1, 600) AS n")

    async def run(connection: asyncpg.Connection[Any]) -> None:
        async with connection.transaction():
            cursor = await connection.cursor("SELECT id FROM t ORDER BY id")
            assert await cursor.forward(300) == 300
            assert [row["id"] for row in await cursor.fetch(2)] == [301, 302]
            assert await cursor.forward(1000) == 298

    by_asyncpg(server, run)


def test_asyncpg_prepares_again_where_columns_have_changed(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    """asyncpg keeps statements, and knows the error by the routine of PostgreSQL."""
    client.execute("INSERT INTO t VALUES (1, 5)")

    async def run(connection: asyncpg.Connection[Any]) -> None:
        read = "SELECT * FROM t WHERE id = $1"
        assert tuple(await connection.fetchrow(read, 1) or ()) == (1, 5)
        client.execute("ALTER TABLE t ADD COLUMN note STRING DEFAULT 'none'")
        assert tuple(await connection.fetchrow(read, 1) or ()) == (1, 5, "none")

    by_asyncpg(server, run)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("INSERT INTO v (id, i2, i4) VALUES ($1, $2, $3)", ["int8", "int2", "int4"]),
        ("UPDATE v SET i4 = $1, f4 = $2 WHERE i2 = $3", ["int4", "float4", "int2"]),
        ("SELECT 1 FROM v WHERE i4 IN ($1) AND i2 = ANY ($2)", ["int4", "int2[]"]),
        ("SELECT 1 FROM v, t WHERE $1::INT4 IS NULL OR i4 = $1", ["int4"]),
        ("SELECT i4 + $1 FROM v", ["int8"]),
    ],
)
def test_parameters_are_told_as_the_columns_beside_them(
    server: ServerProcess, client: psycopg.Connection[Any], query: str, told: list[str]
) -> None:
    """tokio-postgres sends values of the type that it is told, and of no other."""

    async def run(connection: asyncpg.Connection[Any]) -> None:
        statement = await connection.prepare(query)
        assert [type.name for type in statement.get_parameters()] == told

    by_asyncpg(server, run)


def test_asyncpg_reads_what_sqlalchemy_reflects(
    server: ServerProcess, client: psycopg.Connection[Any]
) -> None:
    async def run(connection: asyncpg.Connection[Any]) -> None:
        generated = "SELECT attgenerated FROM pg_attribute WHERE attrelid = $1::REGCLASS::REGCLASS"
        assert await connection.fetchval(f"{generated} AND attnum = 1", "t") == b"\0"
        definition = "SELECT pg_get_constraintdef(c.oid, $1) FROM pg_constraint c WHERE c.conrelid"
        query = f"{definition} = 't'::REGCLASS"
        assert await connection.fetchval(query, True) == "PRIMARY KEY (id)"

    by_asyncpg(server, run)


def by_asyncpg(
    server: ServerProcess, work: Callable[[asyncpg.Connection[Any]], Awaitable[None]]
) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=server.pg_port, user="root", database="defaultdb"
        )
        await work(connection)
        await connection.close()

    asyncio.run(run())


def test_psycopg_reads_by_a_cursor_of_the_server(client: psycopg.Connection[Any]) -> None:
    client.execute("INSERT INTO t SELECT g, g FROM generate_series(1, 250) AS s(g)")
    with client.transaction(), client.cursor(name="mine") as cursor:
        cursor.itersize = 100
        cursor.execute("SELECT id, n FROM t WHERE id > %s ORDER BY id", (50,))
        cursor.scroll(100)
        assert cursor.fetchmany(2) == [(151, 151), (152, 152)]
        cursor.scroll(103, mode="absolute")
        assert [row[0] for row in cursor] == list(range(154, 251))
