"""Who is let in, and how."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import psycopg
import pytest

from tailrace.api.passwords import USER_FAILURES_FREE, Guesses
from tailrace.api.pgwire import PostgresOptions
from tailrace.api.pgwire.authentication import Claim, Method, Scram
from tailrace.api.pgwire.options import postgres_options
from tailrace.api.refusal import NodeRefused
from tailrace.catalog.rights.users import User, make_verifier
from tailrace.catalog.store.secrets import SECRET_BYTES
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.metrics import Metrics
from tests.harness.certificates import certificate
from tests.harness.pg_door import PgDoor, pg_door

SECRET = "pässword 'x'"


def at_door(options: PostgresOptions, work: Callable[[PgDoor], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pg_door(options) as door:
            session = door.node.session()
            await session.execute("CREATE USER ada PASSWORD 'pässword ''x'''; CREATE USER bare")
            await session.close()
            await work(door)

    asyncio.run(run())


async def connect(door: PgDoor, user: str, password: str, **options: Any) -> str:
    """Connects by libpq, and returns the state of the connection's encryption."""
    connection = await psycopg.AsyncConnection.connect(
        host="127.0.0.1", port=door.port, user=user, password=password, dbname="defaultdb",
        **options,
    )  # fmt: skip
    try:
        await connection.execute("SELECT 1")
        return "tls" if connection.pgconn.ssl_in_use else "clear"
    finally:
        await connection.close()


def test_scram_lets_in_who_knows_the_password() -> None:
    async def work(door: PgDoor) -> None:
        assert await connect(door, "ada", SECRET) == "clear"
        for user, password in [("ada", "wrong"), ("bare", ""), ("bare", "x"), ("eve", "x")]:
            with pytest.raises(psycopg.OperationalError, match=r"password|fe_sendauth"):
                await connect(door, user, password)
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(
                host="127.0.0.1", port=door.port, user="eve", password="x", database="defaultdb"
            )

    at_door(PostgresOptions(), work)


def test_a_new_password_replaces_the_old_one() -> None:
    async def work(door: PgDoor) -> None:
        session = door.node.session()
        await session.execute("ALTER USER ada WITH PASSWORD 'new'")
        assert await connect(door, "ada", "new") == "clear"
        with pytest.raises(psycopg.OperationalError):
            await connect(door, "ada", SECRET)
        await session.execute("DROP USER ada")
        with pytest.raises(psycopg.OperationalError):
            await connect(door, "ada", "new")
        await session.close()

    at_door(PostgresOptions(), work)


@pytest.mark.parametrize("method", [Method.SCRAM, Method.PASSWORD])
def test_tls_carries_either_kind_of_password(tmp_path: Path, method: Method) -> None:
    cert, key = certificate(tmp_path)
    options = postgres_options("127.0.0.1", method, insecure=False, cert=cert, key=key)

    async def work(door: PgDoor) -> None:
        encrypted = {"sslmode": "verify-full", "sslrootcert": str(cert)}
        assert await connect(door, "ada", SECRET, **encrypted) == "tls"
        with pytest.raises(psycopg.OperationalError):
            await connect(door, "ada", "wrong", **encrypted)
        if method is Method.PASSWORD:
            with pytest.raises(psycopg.OperationalError, match="over TLS only"):
                await connect(door, "ada", SECRET, sslmode="disable")

    at_door(options, work)


def test_bytes_in_the_clear_are_not_taken_for_encrypted_ones(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = postgres_options("127.0.0.1", Method.SCRAM, insecure=False, cert=cert, key=key)

    async def work(door: PgDoor) -> None:
        client = await door.connect()
        client.raw(bytes.fromhex("0000000804d2162f") + b"Q\0\0\0\x0dDROP\0")
        assert b"unencrypted data" in await client.ended()

    at_door(options, work)


def test_trust_needs_insecure_and_insecure_a_loopback_address() -> None:
    for host, method, insecure in [
        ("127.0.0.1", Method.TRUST, False),
        ("0.0.0.0", Method.SCRAM, True),
        ("10.0.0.1", Method.TRUST, True),
        ("127.0.0.1", Method.PASSWORD, False),
    ]:
        with pytest.raises(NodeRefused):
            postgres_options(host, method, insecure=insecure, cert=None, key=None)
    told = postgres_options("127.0.0.1", Method.SCRAM, insecure=True, cert=None, key=None)
    assert told.method is Method.TRUST


def test_trust_still_needs_a_user_who_exists() -> None:
    async def work(door: PgDoor) -> None:
        assert await connect(door, "bare", "") == "clear"
        with pytest.raises(psycopg.OperationalError, match='role "eve" does not exist'):
            await connect(door, "eve", "")

    at_door(PostgresOptions(method=Method.TRUST), work)


def test_encryption_is_declined_where_there_is_none() -> None:
    async def work(door: PgDoor) -> None:
        client = await door.connect()
        for request in ("0000000804d21630", "0000000804d2162f"):
            client.raw(bytes.fromhex(request))
            assert await client.reader.readexactly(1) == b"N"
        client.startup(user="root")
        assert (await client.until_ready())[-1] == (b"Z", b"I")

    at_door(PostgresOptions(method=Method.TRUST), work)


def test_the_proof_is_bound_to_the_certificate(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = postgres_options("127.0.0.1", Method.SCRAM, insecure=False, cert=cert, key=key)

    async def work(door: PgDoor) -> None:
        bound = {"sslmode": "require", "channel_binding": "require"}
        assert await connect(door, "ada", SECRET, **bound) == "tls"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await connect(door, "ada", "wrong", **bound)
        assert await connect(door, "ada", SECRET, channel_binding="disable") == "tls"

    at_door(options, work)


def test_who_stands_between_with_another_certificate_is_found(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    options = postgres_options("127.0.0.1", Method.SCRAM, insecure=False, cert=cert, key=key)
    other_cert, other_key = certificate(other)
    shown = postgres_options(
        "127.0.0.1", Method.SCRAM, insecure=False, cert=other_cert, key=other_key
    )
    between = replace(options, tls=shown.tls)  # what the client sees is not the server's own

    async def work(door: PgDoor) -> None:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await connect(door, "ada", SECRET, sslmode="require", channel_binding="require")

    at_door(between, work)


def test_an_offer_that_was_taken_away_is_found(tmp_path: Path) -> None:
    """The client says that it could bind, and was not offered to: somebody has cut the offer."""
    claim = Claim("ada", "1.2.3.4", User("ada", make_verifier("x", Random(1))), b"k" * 32)
    exchange = Scram(claim, Guesses(Metrics(), lambda: 0.0), Random(2), b"h" * 32)
    first = b"y,,n=,r=nonce"
    chosen = b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first
    with pytest.raises(SQLError, match="channel binding"):
        asyncio.run(exchange.receive(chosen))


def test_a_door_beyond_loopback_takes_tls_only(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with pytest.raises(NodeRefused, match="in the clear"):
        postgres_options("0.0.0.0", Method.SCRAM, insecure=False, cert=None, key=None)
    options = postgres_options("0.0.0.0", Method.SCRAM, insecure=False, cert=cert, key=key)
    told = postgres_options(
        "0.0.0.0", Method.SCRAM, insecure=False, cert=cert, key=key, plaintext=True
    )
    assert not told.tls_only

    async def work(door: PgDoor) -> None:
        assert await connect(door, "ada", SECRET, sslmode="require") == "tls"
        with pytest.raises(psycopg.OperationalError, match="connections to this server are enc"):
            await connect(door, "ada", SECRET, sslmode="disable")

    at_door(options, work)


def test_guessing_over_the_protocol_is_slowed() -> None:
    async def work(door: PgDoor) -> None:
        for user in ("ada", "eve"):  # who exists, and who does not
            for _ in range(USER_FAILURES_FREE + 1):
                with pytest.raises(psycopg.OperationalError, match="authentication failed"):
                    await connect(door, user, "wrong")
            with pytest.raises(psycopg.OperationalError, match="too many failed attempts"):
                await connect(door, user, SECRET)

    at_door(PostgresOptions(), work)


async def told_salt(door: PgDoor, user: str) -> bytes:
    """Salt and iterations of a user, which the door says before any proof."""
    client = await door.connect()
    client.startup(user=user)
    await client.frame()
    first = b"n,,n=,r=nonce"
    client.send(b"p", b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first)
    kind, body = await client.frame()
    assert kind == b"R"
    return body[4:].partition(b",s=")[2]


def test_salts_of_who_does_not_exist_outlive_a_restart(tmp_path: Path) -> None:
    async def salts() -> list[bytes]:
        async with pg_door(PostgresOptions(), tmp_path / "data") as door:
            session = door.node.session()
            await session.execute("CREATE USER IF NOT EXISTS ada PASSWORD 'x'")
            await session.close()
            assert len(door.node.decoy_key) == SECRET_BYTES
            return [await told_salt(door, user) for user in ("eve", "eve", "bare", "ada")]

    first, again, other, known = asyncio.run(salts())
    assert first == again
    assert len({first, other, known}) == 3
    assert len(first) == len(known)
    assert asyncio.run(salts()) == [first, again, other, known]
