"""10,000 connections that are opened and dropped leave the server serving, with flat memory."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from struct import pack

import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system

CONNECTIONS = 10_000
AT_ONCE = 100
WARM = 2_000
"""Connections before memory is looked at first: pools and caches have filled by then."""

GROWTH_BYTES_MAX = 8 * 1024 * 1024
"""A kilobyte of each of the others would be as much."""

START = pack("!II", 8 + 11, 196608) + b"user\0root\0\0"
BEGIN = b"Q" + pack("!I", 4 + 6) + b"BEGIN\0"
OPENINGS = (b"", START[:7], START, START + BEGIN)
"""What a client has said when it goes."""


def drop(port: int, count: int) -> None:
    """Opens so many connections, a hundred at a time, and closes them without a word."""
    for first in range(0, count, AT_ONCE):
        opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(AT_ONCE)]
        for number, connection in enumerate(opened, first):
            connection.sendall(OPENINGS[number % len(OPENINGS)])
        for number, connection in enumerate(opened, first):
            if number % len(OPENINGS) > 1:
                connection.recv(1)
            connection.close()


def sessions(server: ServerProcess) -> int:
    with psycopg.connect(host="127.0.0.1", port=server.pg_port, user="root") as client:
        return len(client.execute("SELECT pid FROM pg_stat_activity").fetchall())


def test_dropped_connections_leave_nothing(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "t") as server:
        drop(server.pg_port, WARM)
        sessions(server)  # the evaluator is there from its first query on
        before = server.resident_bytes
        drop(server.pg_port, CONNECTIONS - WARM)
        deadline = time.monotonic() + 30
        while sessions(server) > 1:
            assert time.monotonic() < deadline, "sessions outlive their clients"
            time.sleep(0.1)
        assert server.resident_bytes - before < GROWTH_BYTES_MAX
