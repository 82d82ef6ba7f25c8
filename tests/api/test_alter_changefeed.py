"""ALTER CHANGEFEED on running and paused feeds: the whole house, on real threads and files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs.job_store import JobStore
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.jobs.details import decode_details, encode_details
from tailrace.changefeed.pipeline.live import FeedState

MIRROR = "mirror.duckdb"
LOOKS_MAX = 1000
"""Looks at a mirror, each behind all that is committed, before it is said to differ."""


class Feed:
    """A feed of `orders` into a mirror, with `refunds` beside it."""

    def __init__(self, database: AsyncDatabase, job_id: int) -> None:
        self.database = database
        self.job_id = job_id

    async def sql(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in (await self.database.sql(text)).fetchall()]

    async def alter(self, clauses: str) -> list[tuple[object, ...]]:
        return await self.sql(f"ALTER CHANGEFEED {self.job_id} {clauses}")

    async def altered(self, clauses: str) -> None:
        """Alters a feed that runs, and returns when it runs otherwise."""
        live = self.database.feed(self.job_id)
        attempts = live.attempts
        await self.alter(clauses)
        while live.attempts == attempts:
            await asyncio.sleep(0.02)

    async def refused(self, clauses: str) -> SQLError:
        with pytest.raises(SQLError) as caught:
            await self.alter(clauses)
        return caught.value

    async def caught_up(self) -> None:
        feed = self.database.feed(self.job_id)
        await feed.wait_until(await self.database.node.store.now())

    async def equal(self, table: str) -> None:
        """Waits until the mirror shows the table's rows."""
        expected = (await self.database.sql(f"SELECT * FROM {table} ORDER BY k")).arrow()
        found: list[dict[str, object]] = []
        for _ in range(LOOKS_MAX):
            await self.caught_up()
            try:
                found = await self.shown(table)
            except Exception:  # the table is not there yet
                found = []
            if found == expected.to_pylist():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the mirror shows {found}, {table} has {expected.to_pylist()}")

    async def watches(self, what: str) -> None:
        """Waits until SHOW CHANGEFEED JOB tells this of a watched table."""
        shown = None
        for _ in range(LOOKS_MAX):
            shown = await self.sql(f"SHOW CHANGEFEED JOB {self.job_id} WITH WATCHED_TABLES")
            if what in str(shown[0][-1]):
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"the watched tables are {shown}, without {what!r}")

    async def pause(self) -> None:
        """Returns when nobody runs it."""
        await self.sql(f"PAUSE JOB {self.job_id}")
        while await self.sql(
            "SELECT status FROM [SHOW CHANGEFEED JOBS] "
            f"WHERE job_id = {self.job_id} AND status <> 'paused'"
        ):
            await asyncio.sleep(0.02)

    async def shown(self, table: str) -> list[dict[str, object]]:
        mirror = self.database.mirror(MIRROR)
        return (await mirror.sql(f"SELECT * FROM {table} ORDER BY k")).to_pylist()


async def open_feed(path: Path) -> Feed:
    database = await aopen(path / "data")
    for table in ("orders", "refunds"):
        await database.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY, v STRING)")
        await database.sql(
            f"INSERT INTO {table} SELECT i, 'old' FROM generate_series(1, 100) AS t(i)"
        )
    created = await database.sql(f"CREATE CHANGEFEED FOR orders INTO 'duckdb:///{MIRROR}'")
    job_id = created.fetchall()[0][0]
    assert isinstance(job_id, int)
    return Feed(database, job_id)


def test_a_table_joins_and_leaves_a_running_feed(tmp_path: Path) -> None:
    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.equal("orders")
            [(job_id, description)] = await feed.alter("ADD refunds WITH initial_scan")
            assert job_id == feed.job_id
            assert "defaultdb.public.orders, defaultdb.public.refunds INTO" in str(description)
            await feed.sql("UPDATE refunds SET v = 'new' WHERE k < 10")
            await feed.sql("DELETE FROM orders WHERE k = 7")
            await feed.equal("refunds")
            await feed.equal("orders")
            await feed.altered("DROP refunds")
            await feed.sql("DELETE FROM refunds WHERE k < 50")
            await feed.sql("INSERT INTO orders VALUES (101, 'more')")
            await feed.equal("orders")
            assert len(await feed.shown("refunds")) == 100
            await feed.alter("ADD refunds")
            await feed.equal("refunds")
            await feed.alter("DROP refunds ADD refunds DROP orders ADD orders")
            await feed.sql("DELETE FROM refunds WHERE k < 60")
            await feed.equal("refunds")
            await feed.equal("orders")

    asyncio.run(scenario())


def test_a_paused_feed_is_altered_all_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.alter("ADD refunds")
            await feed.equal("refunds")
            await feed.pause()
            await feed.alter("DROP refunds")
            await feed.sql("DELETE FROM refunds WHERE k < 50")
            await feed.alter("ADD refunds SET min_checkpoint_frequency = '1s'")
            await feed.sql("UPDATE orders SET v = 'new' WHERE k < 5")
            await feed.sql(f"RESUME JOB {feed.job_id}")
            await feed.equal("refunds")
            await feed.equal("orders")

    asyncio.run(scenario())


def test_a_target_is_paused_resumed_and_rescanned(tmp_path: Path) -> None:
    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.alter("ADD refunds")
            await feed.equal("refunds")
            await feed.altered("PAUSE TABLE refunds")
            await feed.sql("UPDATE orders SET v = 'new'")
            await feed.equal("orders")
            await feed.sql("DELETE FROM refunds WHERE k < 50")
            await feed.sql("DELETE FROM orders WHERE k < 50")
            await feed.equal("orders")
            assert len(await feed.shown("refunds")) == 100
            assert (await feed.refused("RESCAN TABLE refunds")).sqlstate == "55000"
            before = feed.database.feed(feed.job_id).scanned_rows
            await feed.alter("RESUME TABLE refunds")
            await feed.equal("refunds")
            assert feed.database.feed(feed.job_id).scanned_rows == before
            await feed.alter("RESCAN TABLE refunds")
            for _ in range(LOOKS_MAX):
                if feed.database.feed(feed.job_id).scanned_rows >= before + 51:
                    break
                await asyncio.sleep(0.02)
            assert feed.database.feed(feed.job_id).scanned_rows >= before + 51
            await feed.sql("DELETE FROM refunds WHERE k = 60")
            await feed.equal("refunds")
            await feed.equal("orders")

    asyncio.run(scenario())


def test_a_rescan_of_what_is_being_rescanned_keeps_its_time(tmp_path: Path) -> None:
    """The sink holds nothing of the table by then: a scan at any other time could go back in it."""

    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.caught_up()
            await feed.pause()
            store = feed.database.node.store
            jobs, at = JobStore(store), await store.now()
            details = decode_details((await jobs.get(feed.job_id)).payload)
            begun = msgspec.structs.replace(details.targets[0], again=True, again_at=at)
            transaction = store.begin()
            job = await jobs.read(transaction, feed.job_id)
            payload = encode_details(details.with_target(begun))
            await jobs.put_payload(transaction, job, payload, job.description)
            await transaction.commit()
            await feed.alter("RESCAN TABLE orders")
            details = decode_details((await jobs.get(feed.job_id)).payload)
            assert details.targets == (begun,)

    asyncio.run(scenario())


def test_a_table_that_is_paused_before_it_begins_anew_does_begin_anew(tmp_path: Path) -> None:
    """What the mirror had of it is nothing to go on from: its deletions are not told again."""

    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.equal("orders")
            await feed.pause()
            await feed.sql("DELETE FROM orders WHERE k = 7")
            await feed.alter("DROP orders ADD orders WITH initial_scan")
            await feed.alter("PAUSE TABLE orders")
            await feed.sql(f"RESUME JOB {feed.job_id}")
            while feed.database.feed(feed.job_id).state is not FeedState.STEADY:
                await asyncio.sleep(0.02)
            await feed.alter("RESUME TABLE orders")
            await feed.equal("orders")

    asyncio.run(scenario())


def test_what_cannot_be_altered_is_refused_by_name(tmp_path: Path) -> None:
    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.sql("CREATE VIEW shown AS SELECT k FROM orders")
            await feed.sql("CREATE SEQUENCE numbers")
            for clauses, sqlstate, words in [
                ("ADD orders", "42710", "already watched"),
                ("ADD refunds, refunds", "42710", "already watched"),
                ("ADD nothing", "42P01", "nothing"),
                ("ADD shown", "42809", 'view "shown"'),
                ("ADD numbers", "42809", 'sequence "numbers"'),
                ("ADD refunds WITH diff", "22023", "diff"),
                ("ADD refunds WITH initial_scan, no_initial_scan", "22023", "exclude"),
                ("DROP refunds", "42704", "not watched"),
                ("DROP orders", "22023", "all targets"),
                ("SET cursor = '1'", "22023", "cursor"),
                ("SET initial_scan = 'only'", "22023", "initial_scan"),
                ("SET sink = 'null://'", "22023", "sink"),
                ("SET nonsense", "22023", "nonsense"),
                ("SET resolved = 'soon'", "22023", "resolved"),
                ("SET updated, updated", "42601", "more than once"),
                ("UNSET nonsense", "22023", "nonsense"),
                ("RESUME TABLE orders", "55000", "running"),
            ]:
                error = await feed.refused(clauses)
                assert (error.sqlstate, words in error.message) == (sqlstate, True), error
            await feed.equal("orders")
            with pytest.raises(SQLError, match="does not exist"):
                await feed.sql("ALTER CHANGEFEED 12 ADD refunds")
            await feed.sql(f"CANCEL JOB {feed.job_id}")
            while (await feed.refused("ADD refunds")).sqlstate != "55000":
                await asyncio.sleep(0.02)

    asyncio.run(scenario())


def test_a_feed_outlives_its_only_running_table(tmp_path: Path) -> None:
    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.alter("ADD refunds SET on_table_dropped = 'leave'")
            await feed.equal("refunds")
            await feed.altered("PAUSE TABLE orders")
            await feed.sql("DROP TABLE refunds")
            await feed.watches("refunds dropped")
            await feed.sql("INSERT INTO orders VALUES (101, 'more')")
            await feed.alter("RESUME TABLE orders")
            await feed.equal("orders")

    asyncio.run(scenario())


def test_a_feed_goes_on_when_a_table_of_it_is_dropped(tmp_path: Path) -> None:
    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.alter("ADD refunds SET on_table_dropped = 'leave'")
            await feed.equal("refunds")
            await feed.sql("DROP TABLE refunds")
            await feed.sql("INSERT INTO orders VALUES (101, 'more')")
            await feed.equal("orders")
            await feed.alter("UNSET on_table_dropped")
            await feed.sql("INSERT INTO orders VALUES (102, 'more')")
            await feed.equal("orders")

    asyncio.run(scenario())


def test_a_table_that_was_dropped_long_ago_is_told_of_no_more(tmp_path: Path) -> None:
    """It is told of as long as a job that has ended is kept, and leaves the job behind that."""

    async def scenario() -> None:
        feed = await open_feed(tmp_path)
        async with feed.database:
            await feed.alter("ADD refunds SET on_table_dropped = 'leave'")
            await feed.equal("refunds")
            await feed.sql("DROP TABLE refunds")
            await feed.watches("refunds dropped")
            await feed.sql("SET CLUSTER SETTING jobs.retention_time = '10ms'")
            shown = f"SHOW CHANGEFEED JOB {feed.job_id} WITH WATCHED_TABLES"
            while "refunds" in str((await feed.sql(shown))[0][-1]):
                await asyncio.sleep(0.02)
            await feed.pause()
            await feed.sql(f"RESUME JOB {feed.job_id}")
            await feed.sql("INSERT INTO orders VALUES (101, 'more')")
            await feed.equal("orders")
            error = await feed.refused("DROP defaultdb.public.refunds")
            assert error.sqlstate == "42704"

    asyncio.run(scenario())


def test_a_table_whose_place_another_of_the_feed_has_is_refused(tmp_path: Path) -> None:
    """Also where nothing of the feed is in the sink yet: it would not begin."""

    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE DATABASE other")
            for table in ("orders", 'other.public."Orders"'):
                await database.sql(f"CREATE TABLE {table} (k INT8 PRIMARY KEY)")
            created = await database.sql(
                f"CREATE CHANGEFEED FOR orders INTO 'duckdb:///{MIRROR}' "
                "WITH paused, on_table_dropped = 'leave'"
            )
            job_id = created.fetchall()[0][0]
            assert isinstance(job_id, int)
            feed = Feed(database, job_id)
            error = await feed.refused('ADD other.public."Orders"')
            assert error.sqlstate == "55000"
            assert error.hint == 'Create a changefeed of other.public."Orders" alone.'
            await database.sql("DROP TABLE orders")
            await database.sql("CREATE TABLE orders (k INT8 PRIMARY KEY)")
            error = await feed.refused("ADD orders")
            assert error.sqlstate == "55000"
            assert error.hint is not None and "try again in a moment" in error.hint

    asyncio.run(scenario())
