"""Connections of the HTTP door: what holds one, for how long, and who is not excluded by it."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tailrace.api.admission import Bounds
from tailrace.api.http import connections
from tailrace.api.http.server import HttpOptions, http_options
from tests.harness.certificates import certificate
from tests.harness.http_door import HttpDoor, problem_of

SMALL = Bounds(known=4, unknown=6, unknown_per_address=3, kept_for_admins=1)
HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "


@pytest.fixture
def small() -> Iterator[HttpDoor]:
    with HttpDoor(HttpOptions(trust=False, bounds=SMALL)) as door:
        session = door.node.session()
        door.run(session.execute("CREATE USER ada PASSWORD 'a'; CREATE USER boss PASSWORD 'b'"))
        door.run(session.execute("GRANT admin TO boss; CREATE USER eve PASSWORD 'e'"))
        door.run(session.close())
        yield door


def connect(door: HttpDoor, said: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", door.port))
    client.settimeout(30)
    client.sendall(said)
    return client


def rest(client: socket.socket) -> bytes:
    """All that comes until the server ends the connection."""
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    client.close()
    return b"".join(parts)


def get(door: HttpDoor, user: tuple[str, str]) -> tuple[httpx2.Client, httpx2.Response]:
    client = httpx2.Client(base_url=f"http://127.0.0.1:{door.port}", auth=user, timeout=30)
    return client, client.get("/v1/tables")


def test_half_sent_heads_exclude_nobody(small: HttpDoor) -> None:
    clients = [connect(small, HALF) for _ in range(40)]
    assert small.client.get("/healthz").status_code == 200
    for client in clients[: 40 - SMALL.unknown_per_address]:
        rest(client)
    assert small.node.store.metrics.get("http_connections_yielded_total") >= 37
    for client in clients:
        client.close()


def test_a_half_sent_head_has_so_much_time(
    small: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    assert rest(connect(small, HALF)).startswith(b"HTTP/1.1 408 ")
    assert rest(connect(small)).startswith(b"HTTP/1.1 408 ")


def test_a_half_sent_login_has_so_much_time(
    small: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    head = b"POST /v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    assert rest(connect(small, head + b'Content-Length: 100\r\n\r\n{"user"')) == b""


def test_a_head_after_a_reply_has_so_much_time(
    small: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(small, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    client.sendall(HALF)
    assert b"HTTP/1.1 408 " in rest(client)


def test_what_follows_a_refusal_is_not_read_for_ever(
    small: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    head = b"POST /v1/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999\r\n\r\n{"
    assert rest(connect(small, head)).startswith(b"HTTP/1.1 401 ")


def test_a_slow_body_of_a_known_user_goes_on(
    small: HttpDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a request may take before its client is known."""
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.1)
    body = b'{"sql": "SELECT 1"}'
    head = (
        b"POST /v1/sql HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Basic YWRhOmE=\r\n"
        b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    )
    client = connect(small, head % len(body))
    for at in range(len(body)):
        client.sendall(body[at : at + 1])
        small.run(small.node.store.now())
    assert rest(client).startswith(b"HTTP/1.1 200 ")


def test_users_leave_room_for_others_and_for_admins(small: HttpDoor) -> None:
    held = [get(small, ("ada", "a")) for _ in range(SMALL.per_user)]
    assert [answer.status_code for _, answer in held] == [200] * SMALL.per_user
    for user in (("ada", "a"), ("eve", "e")):
        client, refused = get(small, user)
        assert refused.status_code == 429
        assert problem_of(refused)["sqlstate"] == "53300"
        client.close()
    client, answer = get(small, ("boss", "b"))
    assert answer.status_code == 200
    for each in (client, *(one for one, _ in held)):
        each.close()


def test_a_certificate_counts_on_loopback_too(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = http_options("127.0.0.1", insecure=True, cert=cert, key=key)
    assert options.scheme == "https"
    with HttpDoor(options) as door:
        trusted = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(verify=trusted) as client:
            answer = client.get(f"https://127.0.0.1:{door.port}/healthz")
            assert answer.status_code == 200
        assert rest(connect(door, b"GET /healthz HTTP/1.1\r\n\r\n")) == b""


def test_handshakes_that_stand_still_exclude_nobody(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    options = HttpOptions(cert=cert, key=key, bounds=SMALL)
    with HttpDoor(options) as door:
        silent = [connect(door) for _ in range(20)]
        trusted = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(verify=trusted) as client:
            assert client.get(f"https://127.0.0.1:{door.port}/healthz").status_code == 200
        for client_socket in silent[: 20 - SMALL.unknown_per_address]:
            assert rest(client_socket) == b""
        for client_socket in silent:
            client_socket.close()


def test_a_handshake_has_so_much_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_SECONDS", 0.2)
    cert, key = certificate(tmp_path)
    with HttpDoor(HttpOptions(cert=cert, key=key)) as door:
        assert rest(connect(door)) == b""
        deadline = time.monotonic() + 10  # the server hears of the end a moment later
        while door.node.store.metrics.get("http_connections"):
            assert time.monotonic() < deadline
