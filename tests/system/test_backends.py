"""What one client does to another's session, by real drivers at a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest

from tests.harness.server_process import ServerProcess

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("backends") / "data", "--insecure") as process:
        yield process


def connect(server: ServerProcess) -> psycopg.Connection[tuple[object, ...]]:
    url = f"postgresql://root@127.0.0.1:{server.pg_port}/defaultdb"
    return psycopg.connect(url, autocommit=True)


def test_a_terminated_client_is_told_why(server: ServerProcess) -> None:
    with connect(server) as one, connect(server) as other:
        told: list[tuple[str | None, str | None]] = []
        one.add_notice_handler(lambda notice: told.append((notice.severity, notice.sqlstate)))
        pid = other.info.backend_pid
        assert one.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
        with pytest.raises(psycopg.errors.AdminShutdown):
            other.execute("SELECT 1")
        assert other.broken
        listed = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        while one.execute(listed, (pid,)).fetchone() != (0,):
            pass
        assert one.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (False,)
        assert told == [("WARNING", "01000")]
        with pytest.raises(psycopg.errors.AdminShutdown):
            one.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        assert one.broken


def test_asyncpg_takes_advisory_locks(server: ServerProcess) -> None:
    async def scenario() -> None:
        address: dict[str, Any] = {"host": "127.0.0.1", "user": "root", "database": "defaultdb"}
        one = await asyncpg.connect(port=server.pg_port, **address)
        other = await asyncpg.connect(port=server.pg_port, **address)
        assert await one.fetchval("SELECT pg_advisory_lock($1)", 5) is None
        assert await other.fetchval("SELECT pg_try_advisory_lock($1)", 5) is False
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.fetchval("SELECT pg_advisory_lock($1)", 5), 0.5)
        await one.close()
        assert await other.fetchval("SELECT pg_try_advisory_lock($1)", 5) is True
        await other.close()

    asyncio.run(scenario())
