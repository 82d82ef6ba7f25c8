"""Attacks on a real server, with TLS and without, by whoever has no password."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.harness.certificates import certificate
from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 60.0
SEGMENTS_BYTES = 4 * 16 * 1024 * 1024
"""So much is written that the log makes several segments."""


@contextlib.contextmanager
def attacked(folder: Path, *, tls: bool, descriptors: int | None = None) -> Iterator[ServerProcess]:
    options: tuple[str, ...] = ()
    if tls:
        cert, key = certificate(folder)
        options = ("--cert", str(cert), "--key", str(key))
    with ServerProcess(folder / "data", *options, descriptors=descriptors) as server:
        if tls:
            server.client.close()
            trusted = ssl.create_default_context(cafile=str(cert))
            server.client = httpx2.Client(verify=trusted, timeout=PATIENCE_SECONDS)
        yield server


@contextlib.contextmanager
def held(port: int, count: int, said: bytes) -> Iterator[None]:
    """So many connections from several addresses that say no more than that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.ExitStack() as closing:
        closing.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(count):
            source = (f"127.0.0.{2 + number % 20}", 0)
            with contextlib.suppress(OSError):  # it is full: what is connected is attack enough
                client = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS, source)
                closing.callback(client.close)
                client.sendall(said)
        yield


@pytest.mark.parametrize("tls", [False, True])
def test_half_sent_heads_do_not_stop_the_store(tmp_path: Path, tls: bool) -> None:
    """At both doors at once, of a process that may open 1,536 files, while the log grows."""
    with attacked(tmp_path, tls=tls, descriptors=1536) as server:
        server.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        half = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
        with held(server.port, 1500, half), held(server.pg_port, 1500, b""):
            row = "x" * 1_000_000
            for number in range(SEGMENTS_BYTES // len(row)):
                server.sql("INSERT INTO t VALUES ($1, $2)", number, row)
            assert server.client.get(f"{server.url}/healthz").status_code == 200
            address = f"host=127.0.0.1 port={server.pg_port} user=root dbname=defaultdb"
            with psycopg.connect(address) as connection:
                assert connection.execute("SELECT count(*) FROM t").fetchone() == (
                    SEGMENTS_BYTES // len(row),
                )
        assert server.terminate() == 0
        assert "Too many open files" not in server.errors()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("size", [1_000_000, 15_900_000])
def test_a_long_password_stops_nobody(tmp_path: Path, tls: bool, size: int) -> None:
    with attacked(tmp_path, tls=tls) as server:
        begun = server.processor_seconds
        answer = server.client.post(
            f"{server.url}/v1/login", json={"user": "root", "password": "x" * size}
        )
        assert answer.status_code == 413
        assert server.processor_seconds - begun < 1.0


def test_nodes_are_not_let_in_beyond_loopback_without_tls(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="in the clear"):
        ServerProcess(tmp_path / "data", "--rpc-host", "0.0.0.0", "--rpc-port", "0").start()


def test_nodes_join_by_tls_and_by_its_authority_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other, _ = certificate(tmp_path / "other")
    cert, key = certificate(tmp_path)
    options = ("--cert", str(cert), "--key", str(key), "--rpc-port", "0")
    with ServerProcess(tmp_path / "data", *options) as server:
        joining = ("--join", server.rpc_address, "--join-token", str(tmp_path / "data/join.token"))
        with pytest.raises(AssertionError, match="it speaks TLS: give the authority"):
            ServerProcess(tmp_path / "clear", *joining).start()
        with pytest.raises(AssertionError, match="give the authority that signed its --cert"):
            ServerProcess(tmp_path / "misled", *joining, "--join-ca", str(other)).start()
        with ServerProcess(tmp_path / "node", *joining, "--join-ca", str(cert)) as node:
            assert node.rows("SELECT 1") == [[1]]


def test_postgres_beyond_loopback_wants_tls(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="--pg-plaintext"):
        ServerProcess(tmp_path / "data", "--pg-host", "0.0.0.0", insecure=False).start()


def test_the_limit_of_open_files_is_raised(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with ServerProcess(tmp_path / "data") as server:
            assert server.rows("SELECT 1") == [[1]]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_few_open_files_are_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="raise the limit"):
        ServerProcess(tmp_path / "data", descriptors=512).start()
