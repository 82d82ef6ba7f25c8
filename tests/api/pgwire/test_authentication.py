"""Who is let in, and how."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tailrace.api.pgwire import PostgresOptions
from tailrace.api.pgwire.authentication import Method
from tailrace.api.pgwire.options import postgres_options
from tailrace.api.refusal import NodeRefused
from tests.harness.pg_door import PgDoor, pg_door

SECRET = "pässword 'x'"


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(dt.datetime(2020, 1, 1))
        .not_valid_after(dt.datetime(2090, 1, 1))
        .add_extension(address, critical=False)
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = folder / "cert.pem", folder / "key.pem"
    cert_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    plain = serialization.NoEncryption()
    key_path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return cert_path, key_path


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
