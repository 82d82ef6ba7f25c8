"""Enumerations through real clients: by OIDs that they look up, in text and in binary."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg.types import TypeInfo
from psycopg.types.enum import EnumInfo, register_enum

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system


class Mood(enum.Enum):
    sad = "sad"
    ok = "ok"
    happy = "happy"


SCHEMA = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TABLE people (name STRING PRIMARY KEY, m mood, ms mood[])",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("enums") / "data", "--insecure") as process:
        for statement in SCHEMA:
            process.sql(statement)
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(
        host="127.0.0.1", port=server.pg_port, user="root", dbname="defaultdb", autocommit=True
    ) as connection:
        connection.execute("DELETE FROM people")
        yield connection


def test_a_type_is_named_without_a_table(client: psycopg.Connection[Any]) -> None:
    literals = "SELECT 'ok'::mood, mood 'sad', CAST('ok' AS public.mood), 'sad'::mood < 'ok'::mood"
    assert client.execute(literals).fetchall() == [("ok", "sad", "ok", True)]
    shown = client.execute("SELECT 'ok'::mood, '{ok,sad}'::mood[]").description
    info = TypeInfo.fetch(client, "mood")
    assert shown is not None and info is not None
    assert [column.type_code for column in shown] == [info.oid, info.array_oid]
    assert client.execute("SELECT %s::mood", ["happy"]).fetchall() == [("happy",)]
    sorted_ = "SELECT x::mood FROM (VALUES ('ok'), ('sad')) AS v(x) ORDER BY 1"
    assert client.execute(sorted_).fetchall() == [("sad",), ("ok",)]
    for wrong in ("SELECT 'glad'::mood", "SELECT x::mood FROM (VALUES ('glad')) AS v(x)"):
        with pytest.raises(psycopg.errors.InvalidTextRepresentation, match="glad"):
            client.execute(wrong)
    with pytest.raises(psycopg.errors.UndefinedObject, match='type "moody" does not exist'):
        client.execute("SELECT 'ok'::moody")


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("place", ["%s", "%b", "%t"])
def test_psycopg_declares_the_oid_of_a_type(
    client: psycopg.Connection[Any], place: str, binary: bool
) -> None:
    info = EnumInfo.fetch(client, "mood")
    assert info is not None and list(info.labels) == ["sad", "ok", "happy"]
    register_enum(info, client, Mood)

    def ask(query: str, *values: object) -> list[Any]:
        done = client.execute(query.replace("?", place), values, binary=binary)
        return done.fetchall()

    assert ask("SELECT ? AS m, ? AS ms", Mood.ok, [Mood.ok, None]) == [(Mood.ok, [Mood.ok, None])]
    inserted = ask("INSERT INTO people VALUES ('a', ?, ?) RETURNING m, ms", Mood.ok, [Mood.sad])
    assert inserted == [(Mood.ok, [Mood.sad])]
    assert ask("SELECT name FROM people WHERE m = ?", Mood.ok) == [("a",)]
    assert ask("SELECT name FROM people WHERE m > ? AND ? = ANY(ms)", Mood.sad, Mood.sad) == [
        ("a",)
    ]
    assert ask("SELECT name FROM people WHERE m = ANY(?)", [Mood.sad, Mood.ok]) == [("a",)]
    changed = ask("UPDATE people SET m = ? WHERE m < ? RETURNING m", Mood.happy, Mood.happy)
    assert changed == [(Mood.happy,)]


def test_a_statement_follows_a_type_that_grows(client: psycopg.Connection[Any]) -> None:
    client.execute("DROP TYPE IF EXISTS color")
    client.execute("CREATE TYPE color AS ENUM ('red')")
    for _ in range(7):  # psycopg prepares what it runs often
        assert client.execute("SELECT %s::color, 'red'::color", ["red"]).fetchone() == ("red",) * 2
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        client.execute("SELECT %s::color", ["blue"])
    client.execute("ALTER TYPE color ADD VALUE 'blue'")
    assert client.execute("SELECT %s::color, 'blue'::color", ["blue"]).fetchone() == ("blue",) * 2
    info = EnumInfo.fetch(client, "color")
    assert info is not None
    client.execute("DROP TYPE color")
    with pytest.raises(psycopg.errors.UndefinedObject, match="does not exist"):
        client.execute("SELECT 'red'::color")
    register_enum(info, client)
    assert info.enum is not None
    with pytest.raises(psycopg.errors.UndefinedObject, match=f"OID {info.oid} does not exist"):
        client.execute("SELECT %s AS c", [info.enum["red"]])


def test_asyncpg_reads_and_writes_a_type(server: ServerProcess) -> None:
    async def scenario() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=server.pg_port, user="root", database="defaultdb"
        )
        found = await connection.fetchrow("SELECT $1::mood AS m, $2::mood[] AS ms", "ok", ["sad"])
        assert found is not None and dict(found) == {"m": "ok", "ms": ["sad"]}
        with pytest.raises(asyncpg.InvalidTextRepresentationError):
            await connection.fetchval("SELECT $1::mood", "glad")
        await connection.set_type_codec(
            "mood", encoder=lambda mood: mood.value, decoder=Mood, format="text", schema="public"
        )
        assert await connection.fetchval("SELECT $1::mood", Mood.ok) is Mood.ok
        assert await connection.fetchval("SELECT '{ok}'::mood[]") == [Mood.ok]
        await connection.close()

    asyncio.run(scenario())


def test_sqlalchemy_makes_uses_and_reflects_a_type(server: ServerProcess) -> None:
    engine = sqlalchemy.create_engine(
        f"postgresql+psycopg://root@127.0.0.1:{server.pg_port}/defaultdb"
    )
    metadata = sqlalchemy.MetaData()
    kind = sqlalchemy.Enum(Mood, name="feeling")
    table = sqlalchemy.Table(
        "felt", metadata,
        sqlalchemy.Column("id", sqlalchemy.BigInteger, primary_key=True),
        sqlalchemy.Column("f", kind), sqlalchemy.Column("fs", sqlalchemy.ARRAY(kind)),
    )  # fmt: skip
    metadata.create_all(engine)
    metadata.create_all(engine)
    with engine.begin() as connection:
        rows = [{"id": 1, "f": Mood.ok, "fs": [Mood.ok]}, {"id": 2, "f": Mood.sad, "fs": []}]
        connection.execute(table.insert(), rows)
        moods = sqlalchemy.select(table.c.f).where(table.c.f.in_([Mood.ok, Mood.sad]))
        assert connection.scalars(moods.order_by(table.c.f)).all() == [Mood.sad, Mood.ok]
    reflected = sqlalchemy.Table("felt", sqlalchemy.MetaData(), autoload_with=engine)
    assert repr(reflected.c.f.type) == "ENUM('sad', 'ok', 'happy', name='feeling')"
    inspector: Any = sqlalchemy.inspect(engine)
    assert "feeling" in [found["name"] for found in inspector.get_enums()]
    metadata.drop_all(engine)
    engine.dispose()
