"""VERIFY CHANGEFEED of logs finds what was changed by hand, and sends again what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.jobs import job
from tailrace.changefeed.verify import log_verification, table_history
from tailrace.kvlayer.keys import table_span
from tests.harness.by_hand import by_hand

ROWS = 1000
KEYS = ("INT8", "STRING", "UUID", "DECIMAL(9,2)")
MODES = ("log", "both", "both&apply=transaction")


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_verification, "STRETCH_ROWS", 200)
    monkeypatch.setattr(log_verification, "HASHED_ROWS", 90)
    monkeypatch.setattr(log_verification, "FEW_ROWS", 20)
    monkeypatch.setattr(table_history, "PIECE_ROWS", 70)


class Log:
    """A feed of `t` into a log, whose file is changed by hand."""

    def __init__(self, database: AsyncDatabase, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self.job_id = 0

    async def sql(self, text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in (await self._database.sql(text)).fetchall()]

    async def create(self, mode: str, options: str = "") -> None:
        ((job_id,),) = await self.sql(
            f"CREATE CHANGEFEED FOR TABLE t INTO 'duckdb:///m.duckdb?mode={mode}' {options}"
        )
        assert isinstance(job_id, int)
        self.job_id = job_id
        await self.caught_up()

    async def caught_up(self) -> None:
        await self._database.feed(self.job_id).wait_until(await self._database.node.store.now())

    async def verify(self, how: str = "") -> list[tuple[str, str]]:
        """Keys and differences, without timestamps."""
        found = await self.sql(f"VERIFY CHANGEFEED {self.job_id} {how}")
        assert {str(row[0]) for row in found} <= {"t_log"}
        return sorted((str(key), _without_timestamp(str(what))) for _, key, what in found)

    async def by_hand(self, *statements: str) -> None:
        path = self._folder / "data" / "mirrors" / "m.duckdb"
        async with by_hand(self._database, path) as cursor:
            ((base,),) = cursor.execute(
                "SELECT base_table FROM _tailrace.logs WHERE log_table LIKE '%t_log'"
            ).fetchall()
            for statement in statements:
                cursor.execute(statement.replace("LOG", f"_tailrace.{base}"))

    async def read(self, query: str) -> list[tuple[object, ...]]:
        found = await self._database.mirror("m.duckdb").sql(query)
        return [tuple(row.values()) for row in found.to_pylist()]


def _without_timestamp(what: str) -> str:
    kind, _, rest = what.partition(" at ")
    return f"{kind} {rest.partition(' ')[2]}"


def on_log(folder: Path, work: Callable[[Log], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with await aopen(folder / "data") as database:
            await work(Log(database, folder))

    asyncio.run(whole())


async def fill(log: Log, key: str = "INT8") -> None:
    value = "gen_random_uuid()" if key == "UUID" else f"i::{key}"
    await log.sql(f"CREATE TABLE t (k {key} PRIMARY KEY, v STRING, n INT8)")
    await log.sql(
        f"INSERT INTO t SELECT {value}, 'row ' || i, i FROM generate_series(1, {ROWS}) AS g(i)"
    )


async def change(log: Log) -> None:
    await log.sql("UPDATE t SET v = 'updated ' || n WHERE n % 3 = 0")
    await log.sql("DELETE FROM t WHERE n % 7 = 0")
    await log.sql("UPDATE t SET v = 'again ' || n WHERE n < 100")
    await log.caught_up()


THREE_CHANGES = (
    """UPDATE LOG SET after = '{"by": "hand"}' WHERE after->>'v' = 'updated 333'""",
    "DELETE FROM LOG WHERE after->>'v' = 'updated 21'",
    "INSERT INTO LOG SELECT * REPLACE (_key || '\\x01'::BLOB AS _key, '[\"hand\"]' AS key) "
    "FROM LOG WHERE after->>'v' = 'updated 600'",
)


@pytest.mark.parametrize(
    ("key", "mode"), [*((key, "log") for key in KEYS), *(("INT8", mode) for mode in MODES[1:])]
)
def test_three_changes_by_hand_are_found(tmp_path: Path, key: str, mode: str) -> None:
    async def scenario(log: Log) -> None:
        await fill(log, key)
        await log.create(mode)
        await change(log)
        before = await log.read("FROM t_log ORDER BY ALL")
        assert await log.verify() == []
        await log.by_hand(*THREE_CHANGES)
        found = await log.verify()
        assert sorted(what for _, what in found) == [
            "change is missing in the log",
            "row differs in after",
            "row is not in the table's history",
        ]
        if key == "INT8":
            assert {key for key, what in found if "after" in what or "missing" in what} == {
                "k=333",
                "k=21",
            }
        assert sorted(what for _, what in await log.verify("REPAIR")) == [
            "change is missing in the log",
            "row differs in after; not repaired: a log is only added to",
            "row is not in the table's history; not repaired: a log is only added to",
        ]
        assert len(await log.verify()) == 2
        await log.by_hand(
            "DELETE FROM LOG WHERE after->>'by' = 'hand'",
            "DELETE FROM LOG WHERE key->>0 = 'hand'",
        )
        assert len(await log.verify("REPAIR")) == 1
        assert await log.verify() == []
        assert await log.read("FROM t_log ORDER BY ALL") == before
        if "both" in mode:
            expected = await log.sql("SELECT k::STRING, v FROM t ORDER BY 1")
            assert await log.read("SELECT k::VARCHAR AS k, v FROM t ORDER BY 1") == expected

    on_log(tmp_path, scenario)


def test_rows_of_a_scan_are_all_there(tmp_path: Path) -> None:
    async def scenario(log: Log) -> None:
        await fill(log)
        await log.create("log")
        await log.by_hand(
            "DELETE FROM LOG WHERE after->>'n' = '17'",
            "UPDATE LOG SET operation = 'insert' WHERE after->>'n' = '18'",
            "INSERT INTO LOG SELECT * FROM LOG WHERE after->>'n' = '19'",
            "INSERT INTO LOG SELECT * REPLACE (commit_timestamp - 1 AS commit_timestamp) "
            "FROM LOG WHERE after->>'n' = '20'",
        )
        assert await log.verify() == [
            ("k=17", "scan is missing in the log"),
            ("k=18", "row differs in operation"),
            ("k=19", "row is in the log more than once"),
            ("k=20", "row is not in the table's history"),
        ]
        assert len(await log.verify("REPAIR")) == 4
        assert [key for key, _ in await log.verify()] == ["k=18", "k=19", "k=20"]

    on_log(tmp_path, scenario)


SCHEMA_CHANGES = (
    "ALTER TABLE t ADD COLUMN c INT8 DEFAULT 3",
    "ALTER TABLE t ADD COLUMN u UUID DEFAULT gen_random_uuid()",
    "ALTER TABLE t ALTER COLUMN n TYPE STRING",
    "ALTER TABLE t RENAME COLUMN v TO w",
    "ALTER TABLE t DROP COLUMN c",
    "ALTER TABLE t ALTER COLUMN n SET NOT NULL",
    "ALTER TABLE t ALTER PRIMARY KEY USING COLUMNS (n)",
    "TRUNCATE t",
)


def test_a_log_is_verified_behind_every_schema_change(tmp_path: Path) -> None:
    async def scenario(log: Log) -> None:
        await fill(log)
        await log.create("both")
        number = ROWS
        for statement in SCHEMA_CHANGES:
            await log.sql("UPDATE t SET v = v || '!' WHERE k < 40".replace("v", await text_of(log)))
            await log.sql(statement)
            number += 1
            await log.sql(f"INSERT INTO t (k, n) VALUES ({number}, '{number}')")
            await log.sql(f"DELETE FROM t WHERE k = {number - ROWS}")
            await log.caught_up()
            assert await log.verify() == [], statement
        await log.sql(f"ALTER CHANGEFEED {log.job_id} RESCAN TABLE t")
        live = log._database.feed(log.job_id)
        scanned = live.scanned_rows
        while live.scanned_rows == scanned:
            await asyncio.sleep(0)
        await log.caught_up()
        assert await log.verify() == []
        operations = await log.read("SELECT DISTINCT operation FROM t_log ORDER BY 1")
        assert [name for (name,) in operations] == [
            "backfill", "delete", "insert", "scan", "truncate", "update",
        ]  # fmt: skip
        await log.by_hand(
            "DELETE FROM LOG WHERE operation = 'truncate'",
            "DELETE FROM LOG WHERE operation = 'backfill' AND after->>'k' = '77'",
            "UPDATE LOG SET before = NULL WHERE operation = 'backfill' AND after->>'k' = '78'",
        )
        found = await log.verify("REPAIR")
        assert (
            "",
            "change is missing in the log; not repaired: a truncation is not sent again",
        ) in found
        assert sum("backfill is missing" in what for _, what in found) == 3
        assert sum("differs in before" in what for _, what in found) >= 2
        assert {what for _, what in await log.verify()} == {
            "change is missing in the log",
            "row differs in before",
        }

    on_log(tmp_path, scenario)


async def text_of(log: Log) -> str:
    """The present name of the column of texts."""
    columns = [str(row[0]) for row in await log.sql("SHOW COLUMNS FROM t")]
    return "v" if "v" in columns else "w"


def test_what_is_written_meanwhile_differs_in_nothing(tmp_path: Path) -> None:
    async def scenario(log: Log) -> None:
        await fill(log)
        await log.create("log")
        ended = asyncio.Event()

        async def write() -> int:
            written = 0
            async with log._database.session() as session:
                while not ended.is_set():
                    await session.sql("UPSERT INTO t VALUES ($1, 'more', 1)", [written % ROWS])
                    await session.sql("DELETE FROM t WHERE k = $1", [(written * 7) % ROWS])
                    written += 1
            return written

        writing = asyncio.create_task(write())
        for how in ("", "AT RESOLVED", "REPAIR", ""):
            assert await log.verify(how) == []
        ended.set()
        assert await writing > 0

    on_log(tmp_path, scenario)


def test_collected_history_is_told_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PROTECTION_SECONDS", 0.0)

    async def scenario(log: Log) -> None:
        await fill(log)
        await log.create("log")
        store = log._database.node.served
        assert store is not None
        collected_at = await store.now()
        await log.sql("UPDATE t SET v = 'later' WHERE n = 5")
        await log.caught_up()
        ((table_id,),) = await log.read("SELECT table_id FROM _tailrace.logs")
        assert isinstance(table_id, int)
        span = table_span(table_id)
        while (
            await store.gc_threshold_over([span]) < collected_at
        ):  # the feed protects until it has saved
            await log.caught_up()
            await store.collect_garbage(span, collected_at)
        await log.by_hand("DELETE FROM LOG")
        assert await log.verify() == [("k=5", "change is missing in the log")]
        assert len(await log.verify("REPAIR")) == 1
        assert await log.read("SELECT operation FROM t_log") == [("update",)]
        await log.by_hand(
            f"INSERT INTO LOG SELECT * REPLACE ({collected_at} AS commit_timestamp) FROM LOG"
        )
        verified = await log._database.sql(f"VERIFY CHANGEFEED {log.job_id}")
        assert verified.fetchall() == []
        assert verified.notice is not None
        assert 'log "t_log": 1 rows at or below' in verified.notice

    on_log(tmp_path, scenario)


def test_a_log_of_a_table_that_is_paused_is_compared_up_to_there(tmp_path: Path) -> None:
    async def scenario(log: Log) -> None:
        await fill(log)
        await log.sql("CREATE TABLE other (k INT8 PRIMARY KEY)")
        await log.create("both")
        await log.sql(f"ALTER CHANGEFEED {log.job_id} ADD other")
        await log.caught_up()
        live = log._database.feed(log.job_id)
        attempts = live.attempts
        await log.sql(f"ALTER CHANGEFEED {log.job_id} PAUSE TABLE t")
        while live.attempts == attempts:
            await asyncio.sleep(0)
        await log.sql("UPDATE t SET v = 'unseen'")
        await log.sql("INSERT INTO other VALUES (1)")
        await log.caught_up()
        assert await log.verify() == []
        await log.by_hand("DELETE FROM LOG WHERE after->>'n' = '17'")
        with pytest.raises(SQLError, match="takes no rows again"):
            await log.verify("REPAIR")

    on_log(tmp_path, scenario)
