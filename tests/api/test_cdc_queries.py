"""CREATE CHANGEFEED … AS SELECT: what a query shows of each change, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.jobs import JobState
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.process import fibre
from tailrace.sql.execute.query import feed_queries
from tests.harness.webhook_receiver import WebhookReceiver

MIRROR = "duckdb:///m.duckdb"


REFUSED = {
    "SELECT count(*) FROM orders": "aggregate functions are",
    "SELECT array_agg(id) FROM orders": "aggregate functions are",
    "SELECT rank() OVER (ORDER BY id) FROM orders": "window functions are",
    "SELECT (SELECT 1) FROM orders": "subqueries are",
    "SELECT id FROM orders WHERE id IN (SELECT 1)": "subqueries are",
    "SELECT * FROM (SELECT 1) AS t": "subqueries are",
    "SELECT * FROM orders, orders AS o": "more than one table is",
    "SELECT * FROM orders JOIN orders AS o USING (id)": "more than one table is",
    "SELECT id FROM orders GROUP BY id": "GROUP BY is",
    "SELECT id FROM orders ORDER BY id": "ORDER BY is",
    "SELECT id FROM orders LIMIT 1": "LIMIT is",
    "SELECT id FROM orders OFFSET 1": "OFFSET is",
    "SELECT DISTINCT id FROM orders": "DISTINCT is",
    "WITH o AS (SELECT 1) SELECT * FROM o": "WITH is",
    "SELECT id FROM orders UNION SELECT id FROM orders": "set operations are",
    "SELECT 1": "a query without FROM is",
    "SELECT generate_series(1, 2) FROM orders": "set-returning functions are",
    "SELECT random() FROM orders": "volatile function random is",
    "SELECT gen_random_uuid() FROM orders": "volatile function gen_random_uuid is",
    "SELECT clock_timestamp() FROM orders": "volatile function clock_timestamp is",
    "SELECT nextval('s') FROM orders": "volatile function nextval is",
    "SELECT id FROM orders FOR UPDATE": "FOR UPDATE and FOR SHARE are",
    "SELECT id FROM orders AS OF SYSTEM TIME '-1s'": "AS OF SYSTEM TIME is",
    "SELECT current_user FROM orders": "function current_user is",
}


class Orders:
    """A store with orders, of which one was updated twice and one is gone."""

    def __init__(self, database: AsyncDatabase, began: str) -> None:
        self.sql = database.sql
        self.database = database
        self.began = began

    async def shown(self, query: str, options: str = "") -> list[Any]:
        """The messages of a feed from before the first row on."""
        found = await self.sql(
            f"EXPLAIN CHANGEFEED WITH cursor = '{self.began}', sample = 100{options} AS {query}"
        )
        return [json.loads(bytes(value)) for _, _, value in found.fetchall()]  # type: ignore[arg-type]

    async def error(self, query: str, options: str = "") -> SQLError:
        with pytest.raises(SQLError) as caught:
            await self.shown(query, options)
        return caught.value

    async def feed(self, query: str, sink: str = MIRROR, options: str = "") -> int:
        created = await self.sql(f"CREATE CHANGEFEED INTO '{sink}' {options} AS {query}")
        ((job_id,),) = created.fetchall()
        assert isinstance(job_id, int)
        return job_id

    async def caught_up(self, jobs: list[int]) -> None:
        async with asyncio.timeout(30):
            now = await self.database.node.store.now()
            for job_id in jobs:
                await self.database.feed(job_id).wait_until(now)

    async def mirrored(self, job_id: int) -> list[tuple[object, ...]]:
        await self.caught_up([job_id])
        found = await self.database.mirror(MIRROR).sql("SELECT * FROM orders ORDER BY 1")
        return [tuple(row.values()) for row in found.to_pylist()]

    async def failure(self, job_id: int) -> str:
        """Why a feed has failed, once it has."""
        async with asyncio.timeout(30):
            await self.sql(f"SHOW JOB WHEN COMPLETE {job_id}")
        ((state, error),) = (
            await self.sql(
                f"SELECT status, error FROM [SHOW CHANGEFEED JOBS] WHERE job_id = {job_id}"
            )
        ).fetchall()
        assert state == "failed"
        return str(error)


@asynccontextmanager
async def orders(folder: Path) -> AsyncIterator[Orders]:
    async with await aopen(folder / "data") as database:
        await database.sql(
            "CREATE TABLE orders (id INT8 PRIMARY KEY, name STRING, total INT8, note STRING)"
        )
        ((began,),) = (await database.sql("SELECT cluster_logical_timestamp()")).fetchall()
        await database.sql(
            "INSERT INTO orders VALUES (1, 'a', 5, 'x'), (2, 'b', 50, 'y'), (3, 'c', 500, NULL)"
        )
        await database.sql("UPDATE orders SET total = 51 WHERE id = 2")
        await database.sql("UPDATE orders SET note = 'z' WHERE id = 2")
        await database.sql("DELETE FROM orders WHERE id = 3")
        yield Orders(database, str(began))


def run(folder: Path, scenario: Any) -> None:
    async def whole() -> None:
        async with orders(folder) as bench:
            await scenario(bench)

    asyncio.run(whole())


def test_rows_are_filtered_and_projected(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        # The note that changed is not read: no message. Of a deletion all but the key is NULL.
        assert await bench.shown("SELECT id, total * 2 AS twice FROM orders WHERE total > 10") == [
            {"id": 2, "twice": 100},
            {"id": 3, "twice": 1000},
            {"id": 2, "twice": 102},
        ]
        shown = await bench.shown("SELECT upper(name) FROM orders AS o WHERE o.id = 3")
        assert shown == [{"upper": "C"}, {"upper": None}]
        wrapped = await bench.shown(
            "SELECT id, total FROM public.orders WHERE orders.id = 3",
            ", envelope = 'wrapped', key_in_value",
        )
        assert wrapped == [
            {"after": {"id": 3, "total": 500}, "key": [3]},
            {"after": None, "key": [3]},
        ]
        keyed = await bench.shown("SELECT total FROM orders WHERE id = 1", ", key_in_value")
        assert keyed == [{"__crdb__": {"key": [1]}, "total": 5}]

    run(tmp_path, scenario)


def test_the_row_before_is_a_record(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        changed = await bench.shown(
            "SELECT id, total - cdc_prev.total AS by, (cdc_prev).note FROM orders "
            "WHERE cdc_prev IS NOT NULL"
        )
        assert changed == [
            {"id": 2, "by": 1, "note": "y"},
            {"id": 2, "by": 0, "note": "y"},
            {"id": 3, "by": None, "note": None},
        ]
        (gone,) = await bench.shown("SELECT cdc_prev FROM orders WHERE event_op() = 'delete'")
        assert gone == {"cdc_prev": {"id": 3, "name": "c", "total": 500, "note": None}}

    run(tmp_path, scenario)


def test_an_event_tells_what_it_is(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        query = "SELECT id, event_op() FROM orders WHERE id > 1"
        told = [(each["id"], each["event_op"]) for each in await bench.shown(query)]
        assert told == [(2, "upsert"), (3, "upsert"), (2, "upsert"), (2, "upsert"), (3, "delete")]
        told = [(each["id"], each["event_op"]) for each in await bench.shown(query, ", diff")]
        assert told == [(2, "insert"), (3, "insert"), (2, "update"), (2, "update"), (3, "delete")]
        (first,) = await bench.shown(
            "SELECT crdb_internal_mvcc_timestamp AS at, event_schema_timestamp() AS schema, "
            "changefeed_creation_timestamp() AS created, now()::STRING AS now "
            "FROM orders WHERE id = 1",
            ", updated",
        )
        assert f"{first['at']:.10f}" == f"{float(first['__crdb__']['updated']):.10f}"
        assert first["schema"] < first["at"] < first["created"]
        assert first["now"].startswith("20")

    run(tmp_path, scenario)


def test_what_needs_more_than_one_change_is_refused(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        for query, what in REFUSED.items():
            error = await bench.error(query)
            assert error.sqlstate == "0A000", query
            assert what in error.message

    run(tmp_path, scenario)


def test_names_and_types_are_checked_before_there_is_a_job(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        codes = {
            "SELECT nope FROM orders": "42703",
            "SELECT cdc_prev.nope FROM orders": "42703",
            "SELECT o.id FROM orders": "42P01",
            "SELECT id, id FROM orders": "42701",
            "SELECT id FROM orders WHERE total": "42804",
            "SELECT nofunc(id) FROM orders": "42883",
            "SELECT id FROM nowhere": "42P01",
        }
        assert {query: (await bench.error(query)).sqlstate for query in codes} == codes
        assert (await bench.error("SELECT id FROM orders", ", diff")).sqlstate == "22023"
        divided = await bench.error("SELECT 10 / (id - 1) FROM orders")
        assert divided.sqlstate == "22012"
        assert "the query of the changefeed cannot be computed" in divided.message
        assert (await bench.sql("SHOW CHANGEFEED JOBS")).fetchall() == []

    run(tmp_path, scenario)


def test_a_mirror_holds_the_rows_that_match(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        query = "SELECT id, name AS who, total * 2 AS twice FROM orders WHERE total > 10"
        job_id = await bench.feed(query)
        assert await bench.mirrored(job_id) == [(2, "b", 102)]
        await bench.sql("UPDATE orders SET total = 11 WHERE id = 1")
        await bench.sql("UPDATE orders SET total = 1 WHERE id = 2")
        await bench.sql("INSERT INTO orders VALUES (4, 'd', 40), (5, 'e', NULL), (6, 'f', 60)")
        await bench.sql("DELETE FROM orders WHERE id = 6")
        assert await bench.mirrored(job_id) == [(1, "a", 22), (4, "d", 80)]
        await bench.sql(f"PAUSE JOB {job_id}")
        await bench.database.node.jobs.wait(job_id, JobState.PAUSED, timeout=30)
        await bench.sql("UPDATE orders SET total = 0 WHERE id = 4")
        await bench.sql(f"RESUME JOB {job_id}")
        assert await bench.mirrored(job_id) == [(1, "a", 22)]
        ((described,),) = (
            await bench.sql(
                f"SELECT description FROM [SHOW CHANGEFEED JOBS] WHERE job_id = {job_id}"
            )
        ).fetchall()
        assert described == f"CREATE CHANGEFEED INTO '{MIRROR}' AS {query}"
        with pytest.raises(SQLError, match="is of a CDC query: its table cannot be altered"):
            await bench.sql(f"ALTER CHANGEFEED {job_id} DROP orders")

    run(tmp_path, scenario)


def test_a_mirror_asks_for_the_key_and_takes_no_events(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        for query, why in {
            "SELECT total FROM orders": "does not show id",
            "SELECT id + 0 AS id FROM orders": "does not show id",
            "SELECT id, cdc_prev.total FROM orders": "a mirror holds rows",
            "SELECT id, event_op() FROM orders": "a mirror holds rows",
        }.items():
            with pytest.raises(SQLError, match=why) as caught:
                await bench.feed(query)
            assert caught.value.sqlstate == "0A000"
        with pytest.raises(SQLError, match="CDC queries into this sink are not supported"):
            await bench.feed("SELECT id FROM orders", "delta:///orders")

    run(tmp_path, scenario)


def test_a_change_of_a_column_that_is_read_fails_the_feed(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        changes = {
            "RENAME COLUMN total TO amount": 'renamed to "amount"',
            "ALTER COLUMN total TYPE STRING": "retyped",
            "DROP COLUMN total": "dropped",
        }
        jobs: list[int] = []
        for number, change in enumerate(changes):
            await bench.sql(f"CREATE TABLE t{number} (id INT8 PRIMARY KEY, total INT8)")
            jobs.append(await bench.feed(f"SELECT id FROM t{number} WHERE total > 10"))
            await bench.sql(f"INSERT INTO t{number} VALUES (7, 70), (8, 8)")
            await bench.sql(f"ALTER TABLE t{number} {change}")
        for number, (job_id, what) in enumerate(zip(jobs, changes.values(), strict=True)):
            error = await bench.failure(job_id)
            named = f'column "total" of table "t{number}", which the query of the changefeed reads'
            assert f"{named}, was {what}" in error
            found = await bench.database.mirror(MIRROR).sql(f"SELECT id FROM t{number}")
            assert found.to_pylist() == [{"id": 7}]  # everything below is there

    run(tmp_path, scenario)


def test_options_behind_the_query_are_told_their_place(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        with pytest.raises(SQLError) as caught:
            await bench.sql("CREATE CHANGEFEED AS SELECT id FROM orders WHERE id > 1 WITH updated")
        assert caught.value.sqlstate == "42601"
        assert "CREATE CHANGEFEED WITH … AS SELECT" in str(caught.value.hint)

    run(tmp_path, scenario)


def test_columns_that_are_not_read_change_unseen(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        before = await bench.shown("SELECT id, total FROM orders")
        await bench.sql("ALTER TABLE orders ADD COLUMN extra INT8 DEFAULT 7")
        await bench.sql("ALTER TABLE orders RENAME COLUMN name TO title")
        await bench.sql("ALTER TABLE orders DROP COLUMN note")
        await bench.sql("UPDATE orders SET extra = 8 WHERE id = 1")
        assert await bench.shown("SELECT id, total FROM orders") == before
        assert len(await bench.shown("SELECT * FROM orders")) > len(before)

    run(tmp_path, scenario)


def test_the_row_before_is_under_the_schema_before(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        await bench.sql("ALTER TABLE orders ADD COLUMN extra INT8 DEFAULT 7")
        ((now,),) = (await bench.sql("SELECT cluster_logical_timestamp()")).fetchall()
        bench.began = str(now)
        await bench.sql("ALTER TABLE orders DROP COLUMN note")
        shown = await bench.shown("SELECT *, cdc_prev.extra AS was FROM orders WHERE id = 1")
        assert shown == [{"id": 1, "name": "a", "total": 5, "extra": 7, "was": 7}]

    run(tmp_path, scenario)


def test_a_mirror_of_whole_transactions_and_of_a_table_without_a_key(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        job_id = await bench.feed(
            "SELECT id, total FROM orders WHERE total > 10", f"{MIRROR}?apply=transaction"
        )
        await bench.sql("CREATE TABLE notes (note STRING, n INT8)")
        other = await bench.feed("SELECT note FROM notes WHERE n > 1")
        await bench.sql("INSERT INTO notes VALUES ('a', 1), ('b', 2), ('c', 3)")
        await bench.sql("UPDATE notes SET n = 0 WHERE note = 'c'")
        await bench.sql("UPDATE orders SET total = 9 + id")
        assert await bench.mirrored(job_id) == [(2, 11)]
        async with asyncio.timeout(30):
            await bench.database.feed(other).wait_until(await bench.database.node.store.now())
        found = await bench.database.mirror(MIRROR).sql("SELECT note FROM notes")
        assert found.to_pylist() == [{"note": "b"}]

    run(tmp_path, scenario)


def test_a_star_is_what_it_is_in_each_version(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        query = "SELECT *, id * 10 AS tens FROM orders WHERE id < 3"
        job_id = await bench.feed(query)
        assert await bench.mirrored(job_id) == [(1, "a", 5, "x", 10), (2, "b", 51, "z", 20)]
        await bench.sql("ALTER TABLE orders ADD COLUMN extra INT8 DEFAULT 7")
        await bench.sql("ALTER TABLE orders DROP COLUMN note")
        await bench.sql("ALTER TABLE orders RENAME COLUMN name TO title")
        await bench.sql("UPDATE orders SET extra = 8 WHERE id = 1")
        await bench.mirrored(job_id)
        found = await bench.database.mirror(MIRROR).sql(
            "SELECT id, title, total, tens, extra FROM orders ORDER BY 1"
        )
        rows = [tuple(row.values()) for row in found.to_pylist()]
        assert rows == [(1, "a", 5, 10, 8), (2, "b", 51, 20, 7)]
        shown = await bench.shown("SELECT *, cdc_prev.total AS was FROM orders WHERE id < 3")
        assert shown[1] == {"id": 2, "name": "b", "total": 50, "note": "y", "was": None}
        assert shown[-1] == {"id": 1, "title": "a", "total": 5, "extra": 8, "was": 5}

    run(tmp_path, scenario)


def test_large_batches_are_as_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the loop goes on while Arrow is made of them."""
    made: list[tuple[int, bool]] = []
    array = feed_queries._array

    def noted(type: ColumnType, values: Sequence[Datum]) -> Any:
        made.append((len(values), fibre._current.fibre is not None))
        return array(type, values)

    monkeypatch.setattr(feed_queries, "_array", noted)

    async def scenario(bench: Orders) -> None:
        await bench.sql(
            "INSERT INTO orders SELECT i, 'n', i FROM generate_series(101, 500) AS g(i)"
        )
        await bench.sql("UPDATE orders SET total = -total WHERE id > 100")
        await bench.sql("DELETE FROM orders WHERE id > 100 AND id % 2 = 0")
        found = await bench.sql(
            f"EXPLAIN CHANGEFEED WITH cursor = '{bench.began}', sample = 1000 AS "
            "SELECT id, total, cdc_prev.total AS was, event_op() AS op FROM orders "
            "WHERE id > 100 AND id % 4 <> 0"
        )
        shown = [json.loads(bytes(value)) for _, _, value in found.fetchall()]  # type: ignore[arg-type]
        ids = [number for number in range(101, 501) if number % 4]
        assert shown == [
            *({"id": i, "total": i, "was": None, "op": "insert"} for i in ids),
            *({"id": i, "total": -i, "was": i, "op": "update"} for i in ids),
            *({"id": i, "total": None, "was": -i, "op": "delete"} for i in ids if not i % 2),
        ]

    run(tmp_path, scenario)
    large = [in_slices for count, in_slices in made if count > feed_queries.CHANGES_SMALL]
    assert large and all(large)


def test_the_document_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "cdc-queries.md").read_text()
    (block,) = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)

    async def whole() -> None:
        async with await aopen(tmp_path / "data") as database:
            for statement in block.split(";"):
                if statement.strip():
                    await database.sql(statement)
            jobs = (await database.sql("SHOW CHANGEFEED JOBS")).fetchall()
            assert len(jobs) == 2

    asyncio.run(whole())


def test_files_hold_what_the_query_shows(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        query = "SELECT name, total FROM orders WHERE total > 10 OR event_op() = 'delete'"
        sink = "nodelocal://self/changes"
        jobs = [
            await bench.feed(query, sink),
            await bench.feed(query, f"{sink}-p", "WITH format = 'parquet'"),
        ]
        await bench.sql("INSERT INTO orders VALUES (9, 'i', 90), (10, 'j', 1)")
        await bench.sql("DELETE FROM orders WHERE id = 2")
        await bench.caught_up(jobs)
        folder = tmp_path / "data" / "mirrors"
        lines = [
            json.loads(line)
            for path in sorted((folder / "changes").rglob("*.ndjson"))
            for line in path.read_text().splitlines()
        ]
        told = [(each["__crdb__"]["key"], each["name"], each["total"]) for each in lines]
        assert told == [([2], "b", 51), ([9], "i", 90), ([2], None, None)]
        found = duckdb.execute(
            f"SELECT name, total, __crdb__event_type FROM '{folder}/changes-p/**/*.parquet'"
        ).fetchall()
        assert sorted(found, key=str) == [("b", 51, "c"), ("i", 90, "c"), (None, None, "d")]

    run(tmp_path, scenario)


def test_requests_hold_what_the_query_shows(tmp_path: Path) -> None:
    async def scenario(bench: Orders) -> None:
        await bench.sql(
            "SET CLUSTER SETTING changefeed.webhook.private_addresses.enabled = true; "
            "SET CLUSTER SETTING changefeed.webhook.insecure_http.enabled = true"
        )
        query = (
            "SELECT name, total - cdc_prev.total AS by, event_op() AS op FROM orders "
            "WHERE total > 10 OR event_op() = 'delete'"
        )
        with WebhookReceiver() as bare, WebhookReceiver() as wrapped:
            jobs = [
                await bench.feed(query, f"webhook-http://{bare.address}/bare"),
                await bench.feed(
                    query, f"webhook-http://{wrapped.address}", "WITH envelope = 'wrapped', updated"
                ),
            ]
            await bench.caught_up(jobs)
            await bench.sql("UPDATE orders SET total = 60 WHERE id = 2")
            await bench.sql("UPDATE orders SET note = 'unseen' WHERE id = 2")
            await bench.sql("UPDATE orders SET total = 7 WHERE id = 1")
            await bench.sql("DELETE FROM orders WHERE id = 2")
            await bench.caught_up(jobs)
        shown: list[dict[str, Any]] = [
            {"name": "b", "by": None, "op": "insert"},
            {"name": "b", "by": 9, "op": "update"},
            {"name": "b", "by": 0, "op": "update"},  # the row before is asked for: any change shows
            {"name": None, "by": None, "op": "delete"},
        ]
        metadata = {"key": [2], "topic": "orders"}
        assert bare.messages == [{**row, "__crdb__": metadata} for row in shown]
        for message in wrapped.messages:
            assert message.pop("updated") > bench.began
        assert wrapped.messages == [{"after": row, **metadata} for row in [*shown[:3], None]]

    run(tmp_path, scenario)
