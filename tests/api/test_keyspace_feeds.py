"""Changefeeds of raw keyspaces: the whole house, on real threads and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.api.keyspaces import AsyncKeyspace
from tailrace.catalog.rights.privileges import Privilege
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import Timestamp, duration, format_timestamp
from tailrace.kvlayer.raw import IngestedEntry, ReplicaKeyspace

MIRROR = "mirror.duckdb"


class Source:
    """A keyspace in a store of its own, its feeds, and their mirrors."""

    def __init__(self, database: AsyncDatabase) -> None:
        self.database = database
        self.keyspace = AsyncKeyspace(database.node, "ks")

    async def feed(self, clauses: str) -> int:
        """The job of a feed of the keyspace, `clauses` behind its name."""
        made = await self.database.sql(f"CREATE CHANGEFEED FOR KEYSPACE ks {clauses}")
        job_id = made.fetchall()[0][0]
        assert isinstance(job_id, int)
        return job_id

    async def caught_up(self, job_id: int) -> None:
        async with asyncio.timeout(30):
            await self.database.feed(job_id).wait_until(await self.database.node.store.now())

    async def becomes(self, job_id: int, state: str) -> tuple[object, ...]:
        """The job's row in SHOW JOBS, once it is in that state."""
        async with asyncio.timeout(30):
            while True:
                (job,) = (await self.database.sql(f"SHOW JOB {job_id}")).fetchall()
                if job[3] == state:
                    return tuple(job)
                await asyncio.sleep(0.02)

    async def shown(self, table: str = "ks") -> dict[bytes, bytes]:
        mirror = self.database.mirror(MIRROR)
        rows = (await mirror.sql(f"SELECT key, value FROM {table} ORDER BY key")).to_pylist()
        return {row["key"]: row["value"] for row in rows}

    async def resolved(self, job_id: int) -> Timestamp:
        mirror = self.database.mirror(MIRROR)
        found = await mirror.sql(f"SELECT resolved FROM _tailrace.progress WHERE job_id = {job_id}")
        return Timestamp(found.to_pylist()[0]["resolved"])

    async def stored(self, at: Timestamp) -> dict[bytes, bytes]:
        return {key: value async for key, value in self.keyspace.scan(at=at)}

    async def refused(self, text: str) -> SQLError:
        with pytest.raises(SQLError) as caught:
            await self.database.sql(text)
        return caught.value


@asynccontextmanager
async def source(path: Path) -> AsyncIterator[Source]:
    database = await aopen(path / "data")
    try:
        await database.sql("CREATE KEYSPACE ks")
        yield Source(database)
    finally:
        await database.close()


@pytest.mark.parametrize("apply", ["row", "transaction"])
def test_a_mirror_equals_its_keyspace(tmp_path: Path, apply: str) -> None:
    async def main() -> None:
        random = Random(7)
        async with source(tmp_path) as on:
            await on.keyspace.put_many([(b"%03d" % i, b"old") for i in range(600)])
            await on.keyspace.delete_range(b"100", b"200")
            job_id = await on.feed(f"INTO 'duckdb:///{MIRROR}?apply={apply}'")
            for turn in range(300):
                key = b"%03d" % random.randrange(700)
                match random.randrange(4):
                    case 0:
                        await on.keyspace.delete(key)
                    case 1:
                        await on.keyspace.put(key, b"brief", ttl_seconds=1)
                    case _:
                        await on.keyspace.put(key, b"%d" % turn)
            await asyncio.sleep(1.1)  # what is brief ends, by the clock of the store
            await on.caught_up(job_id)
            shown = await on.shown()
            assert shown == await on.stored(await on.resolved(job_id))
            assert b"brief" not in shown.values()

    asyncio.run(main())


def test_what_has_ended_is_hidden_by_the_resolved_timestamp(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            job_id = await on.feed(f"INTO 'duckdb:///{MIRROR}'")
            at = await on.keyspace.put(b"k", b"v", ttl_seconds=2)
            await on.caught_up(job_id)
            while await on.shown() == {b"k": b"v"}:
                assert await on.resolved(job_id) < at + duration(seconds=4)
                await on.caught_up(job_id)
            assert await on.resolved(job_id) >= at + duration(seconds=2)

    asyncio.run(main())


def test_a_feed_of_some_keys_has_no_others(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            await on.keyspace.put_many([(key, b"1") for key in (b"a", b"b", b"c", b"d")])
            job_id = await on.feed(f"FROM 'b' TO 'd' INTO 'duckdb:///{MIRROR}'")
            assert (await on.becomes(job_id, "running"))[2] == (
                "CREATE CHANGEFEED FOR KEYSPACE defaultdb.public.ks FROM 'b' TO 'd' "
                f"INTO 'duckdb:///{MIRROR}'"
            )
            await on.keyspace.put_many([(key, b"2") for key in (b"a", b"c", b"d", b"bb")])
            await on.caught_up(job_id)
            assert await on.shown() == {b"b": b"1", b"bb": b"2", b"c": b"2"}
            await on.database.sql(f"PAUSE JOB {job_id}")
            await on.becomes(job_id, "paused")
            await on.keyspace.delete(b"c")
            await on.database.sql(f"RESUME JOB {job_id}")
            await on.caught_up(job_id)
            assert await on.shown() == {b"b": b"1", b"bb": b"2"}

    asyncio.run(main())


def test_a_feed_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            job_id = await on.feed(f"INTO 'duckdb:///{MIRROR}?apply=transaction'")
            await on.keyspace.put(b"a", b"1")
            await on.caught_up(job_id)
        database = await aopen(tmp_path / "data")
        try:
            on = Source(database)
            await on.keyspace.put(b"b", b"2")
            await on.keyspace.delete(b"a")
            await on.caught_up(job_id)
            assert await on.shown() == {b"b": b"2"}
        finally:
            await database.close()

    asyncio.run(main())


def test_rows_stream_without_a_sink(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            await on.keyspace.put_many([(b"a", b"1"), (b"gone", b"1"), (b"m", b"1")])
            await on.keyspace.delete(b"gone")
            (result,) = await on.database.node.session().execute(
                "CREATE CHANGEFEED FOR KEYSPACE ks TO 'm'"
            )
            assert result.stream is not None
            found = [await anext(result.stream)]
            await on.keyspace.put(b"b", b"2")
            await on.keyspace.delete(b"a")
            found += [await anext(result.stream) for _ in range(2)]
            await result.stream.aclose()
            rows = [msgspec.json.decode(row[2])["after"] for row in found]  # type: ignore[arg-type]
            assert [row and row["value"] for row in rows] == ["\\x31", "\\x32", None]

    asyncio.run(main())


def test_messages_tell_the_value_before(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            await on.keyspace.put(b"a", b"1")
            (result,) = await on.database.node.session().execute(
                "CREATE CHANGEFEED FOR KEYSPACE ks WITH diff, initial_scan = 'no'"
            )
            assert result.stream is not None
            await on.keyspace.put(b"a", b"2")
            await on.keyspace.delete(b"a")
            await on.keyspace.put(b"a", b"3")
            found = [await anext(result.stream) for _ in range(3)]
            await result.stream.aclose()
            messages = [msgspec.json.decode(row[2]) for row in found]  # type: ignore[arg-type]
            values = [
                tuple(row and row["value"] for row in (message["before"], message["after"]))
                for message in messages
            ]
            assert values == [("\\x31", "\\x32"), ("\\x32", None), (None, "\\x33")]

    asyncio.run(main())


class Replica:
    """What the replica `copy` in the same store is sent."""

    def __init__(self, on: Source) -> None:
        self._on = on
        self._epoch = 0
        self.mirrored = AsyncKeyspace(on.database.node, "copy")

    async def send(self, *entries: IngestedEntry, resolved: Timestamp) -> None:
        node = self._on.database.node
        async with node.keyspaces.opened("copy", needs=Privilege.INSERT) as raw:
            replica = ReplicaKeyspace(node.store, raw.id)
            if not self._epoch:
                self._epoch = (await replica.open("main")).epoch
            await replica.ingest(
                entries, source="main", epoch=self._epoch, origin=9, resolved=resolved
            )


def test_a_mirror_of_a_replica_equals_it_where_it_is_resolved(tmp_path: Path) -> None:
    """Entries are older than the replica's own descriptor, and what is not resolved is not shown.
    It goes on when the replica is promoted, and ends when it is dropped."""

    async def main() -> None:
        async with source(tmp_path) as on:
            now = await on.database.node.store.now()
            old = [Timestamp(now - duration(seconds=3600 - second)) for second in range(9)]
            await on.database.sql("CREATE KEYSPACE copy WITH (role = 'replica')")
            replica = Replica(on)
            ended = IngestedEntry(b"brief", b"1", old[0], old[1])
            await replica.send(
                ended, IngestedEntry(b"a", b"1", old[0]), IngestedEntry(b"b", b"1", old[2]),
                resolved=old[1],
            )  # fmt: skip
            made = await on.database.sql(
                f"CREATE CHANGEFEED FOR KEYSPACE copy INTO 'duckdb:///{MIRROR}?apply=transaction'"
            )
            job_id = made.fetchall()[0][0]
            assert isinstance(job_id, int)
            feed = on.database.feed(job_id)
            await feed.wait_until(old[1])
            assert await on.shown("copy") == {b"a": b"1"}
            await replica.send(IngestedEntry(b"a", None, old[3], now), resolved=old[4])
            await feed.wait_until(old[4])
            assert await on.shown("copy") == {b"b": b"1"}
            late = f"WITH cursor = '{format_timestamp(old[5])}'"
            error = await on.refused(f"CREATE CHANGEFEED FOR KEYSPACE copy INTO 'null://' {late}")
            assert "has everything of its source" in error.message
            await on.database.sql("ALTER KEYSPACE copy PROMOTE")
            await replica.mirrored.put(b"c", b"own")
            await on.caught_up(job_id)
            assert await on.shown("copy") == {b"b": b"1", b"c": b"own"}
            await on.database.sql("DROP KEYSPACE copy")
            assert "was dropped" in str((await on.becomes(job_id, "failed"))[9])

    asyncio.run(main())


def test_a_dropped_keyspace_ends_its_feed(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            job_id = await on.feed(f"INTO 'duckdb:///{MIRROR}'")
            await on.keyspace.put(b"a", b"1")
            await on.caught_up(job_id)
            await on.database.sql("DROP KEYSPACE ks")
            job = await on.becomes(job_id, "failed")
            assert "was dropped" in str(job[9])

    asyncio.run(main())


def test_a_feed_is_explained(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            await on.keyspace.put_many([(key, b"1") for key in (b"a", b"b", b"c")])
            await on.keyspace.delete(b"b")
            feed = "CHANGEFEED FOR KEYSPACE ks"
            told = await on.database.sql(f"EXPLAIN {feed} FROM 'a' TO 'c'")
            facts = {row[0]: str(row[1]) for row in told.fetchall()}
            name = "defaultdb.public.ks"
            assert "/61" in facts[f"{name}: span"]
            assert facts[f"{name}: initial scan"].startswith("1 row")
            sampled = await on.database.sql(f"EXPLAIN {feed} WITH sample = 9")
            assert [row[0] for row in sampled.fetchall()] == ["ks", "ks"]
            job_id = await on.feed(f"FROM 'a' INTO 'duckdb:///{MIRROR}'")
            await on.caught_up(job_id)
            ((_, state, span, *_),) = (
                await on.database.sql(f"SHOW CHANGEFEED LAG {job_id}")
            ).fetchall()
            assert (state, "/Keyspace/" in str(span)) == ("running", True)

    asyncio.run(main())


def test_bad_feeds_are_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with source(tmp_path) as on:
            into = f"INTO 'duckdb:///{MIRROR}'"
            error = await on.refused(f"CREATE CHANGEFEED FOR KEYSPACE ks FROM 'b' TO 'a' {into}")
            assert (error.sqlstate, "lies between" in error.message) == ("22023", True)
            await on.database.sql("SET CLUSTER SETTING kv.raw.start_window = '1ms'")
            cursor = format_timestamp(await on.database.node.store.now())
            await asyncio.sleep(0.01)
            error = await on.refused(
                f"CREATE CHANGEFEED FOR KEYSPACE ks {into} WITH cursor = '{cursor}'"
            )
            assert (error.sqlstate, "kv.raw.start_window" in error.message) == ("22023", True)
            job_id = await on.feed(into)
            await on.caught_up(job_id)
            assert (await on.refused(f"VERIFY CHANGEFEED {job_id}")).sqlstate == "0A000"

    asyncio.run(main())
