"""External connections: who may make, use, alter and drop them, and what becomes of their feeds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.api.node import NodeOptions
from tailrace.api.refusal import NodeRefused
from tailrace.api.secret_key import KEY_FILE
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.connections import Sealer
from tailrace.changefeed.sinks.protocol import SinkError
from tests.harness.secrets import sealer

SECRET = "kanari"
URI = f"postgres://app:{SECRET}@127.0.0.1:1/mirror"


class Store:
    def __init__(self, database: AsyncDatabase) -> None:
        self.database = database

    async def sql(self, text: str, *, user: str = "root") -> list[tuple[object, ...]]:
        session = self.database.node.session(user=user)
        try:
            results = await session.execute(text)
            return [tuple(row) for row in results[-1].fetch_rows()]
        finally:
            await session.close()

    async def refused(self, text: str, *, user: str = "root") -> SQLError:
        with pytest.raises(SQLError) as caught:
            await self.sql(text, user=user)
        shown = f"{caught.value} {caught.value.detail} {caught.value.hint}"
        assert SECRET not in shown
        return caught.value

    async def mirrored(self, file: str) -> list[object]:
        """The keys in a mirror, once it holds all that is committed."""
        mirror = self.database.mirror(file)
        async with asyncio.timeout(30):
            while True:
                try:
                    await mirror.wait()
                    return (await mirror.sql("SELECT k FROM t ORDER BY k")).column(0).to_pylist()
                except SQLError:
                    await asyncio.sleep(0.02)  # it is not there yet


@asynccontextmanager
async def opened(path: Path, options: NodeOptions | None = None) -> AsyncIterator[Store]:
    async with await aopen(path / "data", options) as database:
        store = Store(database)
        await store.sql("CREATE TABLE IF NOT EXISTS t (k INT8 PRIMARY KEY)")
        yield store


def test_a_connection_is_made_shown_and_dropped(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as store:
            await store.sql(f"CREATE EXTERNAL CONNECTION mirror AS '{URI}'")
            shown = [("mirror", URI.replace(SECRET, "redacted"), "postgres", "root")]
            assert await store.sql("SHOW EXTERNAL CONNECTIONS") == shown
            again = f"CREATE EXTERNAL CONNECTION mirror AS '{URI}'"
            assert (await store.refused(again)).sqlstate == "42710"
            await store.sql("DROP EXTERNAL CONNECTION mirror")
            assert (await store.refused("DROP EXTERNAL CONNECTION mirror")).sqlstate == "42704"
            assert await store.sql("SHOW EXTERNAL CONNECTIONS") == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("uri", "sqlstate"),
    [
        ("nowhere://x", "22023"),
        (f"postgres://app:{SECRET}@host", "22023"),
        (f"postgres://app:{SECRET}x@y/z@host/db", "22023"),
        ("external://other", "22023"),
        ("duckdb:////etc/passwd", "42501"),
    ],
)
def test_what_is_no_sink_is_no_connection(tmp_path: Path, uri: str, sqlstate: str) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as store:
            error = await store.refused(f"CREATE EXTERNAL CONNECTION c AS '{uri}'")
            assert error.sqlstate == sqlstate

    asyncio.run(scenario())


def test_a_changed_connection_moves_its_feeds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as store:
            await store.sql("INSERT INTO t VALUES (1)")
            await store.sql("CREATE EXTERNAL CONNECTION c AS 'duckdb:///a.duckdb'")
            await store.sql("CREATE CHANGEFEED FOR TABLE t INTO 'external://c'")
            assert await store.mirrored("a.duckdb") == [1]
            assert "external://c" in str(await store.sql("SHOW CHANGEFEED JOBS"))
            await store.sql("ALTER EXTERNAL CONNECTION c AS 'duckdb:///b.duckdb'")
            await store.sql("INSERT INTO t VALUES (2)")
            assert await store.mirrored("b.duckdb") == [1, 2]
            refused = await store.refused("ALTER EXTERNAL CONNECTION c AS 'null://'")
            assert refused.sqlstate == "55000"
            assert (await store.refused("DROP EXTERNAL CONNECTION c")).sqlstate == "2BP01"
            [(job_id, *_)] = await store.sql("SHOW CHANGEFEED JOBS")
            await store.sql(f"CANCEL JOB {job_id}")
            async with asyncio.timeout(30):
                while "canceled" not in str(await store.sql("SHOW CHANGEFEED JOBS")):
                    await asyncio.sleep(0.02)
            await store.sql("DROP EXTERNAL CONNECTION c")

    asyncio.run(scenario())


def test_members_of_the_owner_use_a_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as store:
            await store.sql("CREATE USER ada; CREATE ROLE feeders; GRANT ALL ON t TO ada")
            made = "CREATE EXTERNAL CONNECTION c AS 'null://'"
            assert (await store.refused(made, user="ada")).sqlstate == "42501"
            await store.sql(made)
            feed = "CREATE CHANGEFEED FOR TABLE t INTO 'external://c'"
            assert (await store.refused(feed, user="ada")).sqlstate == "42704"
            assert await store.sql("SHOW EXTERNAL CONNECTIONS", user="ada") == []
            await store.sql("ALTER EXTERNAL CONNECTION c OWNER TO feeders; GRANT feeders TO ada")
            await store.sql(feed, user="ada")
            assert len(await store.sql("SHOW EXTERNAL CONNECTIONS", user="ada")) == 1
            away = "ALTER EXTERNAL CONNECTION c OWNER TO root"
            assert (await store.refused(away, user="ada")).sqlstate == "42501"
            await store.sql("GRANT SYSTEM EXTERNALCONNECTION TO ada")
            await store.sql(made.replace(" c ", " d "), user="ada")

    asyncio.run(scenario())


def test_a_setting_keeps_others_to_connections(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with opened(tmp_path) as store:
            await store.sql("CREATE USER ada; GRANT ALL ON t TO ada")
            await store.sql(
                "SET CLUSTER SETTING "
                "changefeed.permissions.require_external_connection_sink.enabled = true"
            )
            await store.sql("CREATE EXTERNAL CONNECTION c AS 'null://'")
            await store.sql("ALTER EXTERNAL CONNECTION c OWNER TO ada")
            feed = "CREATE CHANGEFEED FOR TABLE t INTO '{}'"
            assert (await store.refused(feed.format("null://"), user="ada")).sqlstate == "42501"
            await store.sql(feed.format("external://c"), user="ada")
            await store.sql(feed.format("null://"))  # an admin

    asyncio.run(scenario())


def test_the_key_is_a_file_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        key = tmp_path / "data" / KEY_FILE
        async with opened(tmp_path) as store:
            assert key.stat().st_mode & 0o777 == 0o600
            await store.sql(f"CREATE EXTERNAL CONNECTION c AS '{URI}'")
        moved = key.rename(tmp_path / "elsewhere.key")
        async with opened(tmp_path, NodeOptions(secret_key_file=moved)) as store:
            error = await store.refused("CREATE CHANGEFEED FOR TABLE t INTO 'external://c'")
            assert error.sqlstate == "08001", "it was opened, and tried"
        async with opened(tmp_path) as store:
            error = await store.refused("CREATE CHANGEFEED FOR TABLE t INTO 'external://c'")
            assert "start it with --secret-key-file" in str(error)
        moved.chmod(0o644)
        with pytest.raises(NodeRefused, match="can be read by others"):
            async with opened(tmp_path, NodeOptions(secret_key_file=moved)):
                pass
        moved.chmod(0o600)
        moved.write_text("short")
        with pytest.raises(NodeRefused, match="is not 32 bytes"):
            async with opened(tmp_path, NodeOptions(secret_key_file=moved)):
                pass

    asyncio.run(scenario())


def test_sealed_is_opened_by_its_key_alone() -> None:
    one, other = sealer(1), sealer(2)
    sealed = one.seal(SECRET)
    assert one.open(sealed) == SECRET
    assert SECRET.encode() not in sealed
    assert one.seal(SECRET) != sealed
    with pytest.raises(SinkError, match="sealed with key"):
        other.open(sealed)
    for place in range(len(sealed)):
        damaged = bytearray(sealed)
        damaged[place] ^= 1
        with pytest.raises(SinkError):
            one.open(bytes(damaged))
    assert isinstance(one, Sealer)
