"""Statements that take jobs off a queue: row locks within statements that write."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql import Row, Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
JOB_COUNT = 24
WORKER_COUNT = 5
NEXT = (
    "SELECT id FROM jobs WHERE state = 'new' ORDER BY priority, id LIMIT 2 FOR UPDATE SKIP LOCKED"
)
ONE = NEXT.replace("LIMIT 2", "LIMIT 1")
TAKES = {
    "scalar": f"UPDATE jobs SET state = 'taken' WHERE id = ({ONE}) RETURNING id",
    "in": f"UPDATE jobs SET state = 'taken' WHERE id IN ({NEXT}) RETURNING id",
    "with": f"WITH n AS MATERIALIZED ({NEXT}) UPDATE jobs AS j SET state = 'taken', "
    "tries = j.tries + 1 FROM n WHERE j.id = n.id RETURNING j.id",
    "from": f"UPDATE jobs SET state = 'taken' FROM ({NEXT}) AS n WHERE jobs.id = n.id "
    "RETURNING jobs.id",
    "using": f"DELETE FROM jobs USING ({NEXT}) AS n (i) WHERE jobs.id = n.i RETURNING jobs.id",
    "moved": f"WITH gone AS (DELETE FROM jobs WHERE id IN ({NEXT}) RETURNING id, priority) "
    "INSERT INTO done SELECT id, priority FROM gone RETURNING id",
    "nested": f"WITH n AS (SELECT id FROM ({NEXT}) s), u AS (UPDATE jobs SET state = 'taken' "
    "FROM n WHERE jobs.id = n.id RETURNING jobs.id) SELECT id FROM u",
}


def run(scenario: Callable[[SqlNode], Awaitable[None]], seed: int = 5) -> None:
    sim = Simulation(seed=seed)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE jobs (id INT8 PRIMARY KEY, state TEXT NOT NULL DEFAULT 'new', "
                "priority INT4, tries INT4 NOT NULL DEFAULT 0); CREATE INDEX ON jobs (state, id);"
                "CREATE TABLE done (id INT8 PRIMARY KEY, priority INT4)"
            )
            await node.sql(
                "INSERT INTO jobs (id, priority) SELECT i, i % 3 FROM "
                f"generate_series(1, {JOB_COUNT}) AS i"
            )
            await scenario(node)

    sim.run(main())


async def run_again(session: Session, *texts: str) -> list[Row]:
    """The rows of the transaction, which is run again where it could not be serialized."""
    while True:
        try:
            done = [one for text in texts for one in await session.execute(text)]
            return [row for one in done for row in one.fetch_rows()]
        except SQLError as error:
            if error.sqlstate != "40001":
                raise
            if len(texts) > 1:
                await session.execute("ROLLBACK")


@pytest.mark.parametrize("level", [None, *LEVELS])
@pytest.mark.parametrize("form", list(TAKES))
def test_workers_take_each_job_once(form: str, level: str | None) -> None:
    async def scenario(node: SqlNode) -> None:
        async def work(session: Session) -> None:
            texts = [TAKES[form]]
            if level is not None:
                texts = [f"BEGIN ISOLATION LEVEL {level}", *texts, "COMMIT"]
            while rows := await run_again(session, *texts):
                taken.extend(rows)

        taken: list[Row] = []
        await asyncio.gather(*(work(node.session()) for _ in range(WORKER_COUNT)))
        assert sorted(taken) == [(number,) for number in range(1, JOB_COUNT + 1)]

    run(scenario)


@pytest.mark.parametrize("form", list(TAKES))
def test_a_taken_job_is_read_by_its_key(form: str) -> None:
    async def scenario(node: SqlNode) -> None:
        rows = await node.rows(f"EXPLAIN {TAKES[form]}")
        whole = [place for place, row in enumerate(rows) if row == ("read", "full scan")]
        assert len(whole) == (form in ("using", "nested")), rows  # whose columns are renamed

    run(scenario)


def test_a_job_that_is_locked_is_skipped_or_waited_for() -> None:
    async def scenario(node: SqlNode) -> None:
        other = node.session()
        await other.execute("BEGIN; SELECT id FROM jobs WHERE id = 3 FOR UPDATE")
        assert await node.rows(TAKES["scalar"]) == [(6,)]
        waits = "UPDATE jobs SET tries = 9 WHERE id = (SELECT id FROM jobs WHERE id = 3 FOR UPDATE)"
        waiting = asyncio.create_task(node.session().execute(f"{waits} AND state = 'new'"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await other.execute("UPDATE jobs SET state = 'gone' WHERE id = 3; COMMIT")
        assert [one.tag for one in await waiting] == ["UPDATE 0"], "the newest row is looked at"

    run(scenario)


def test_rows_stay_locked_to_the_end_of_the_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("BEGIN; INSERT INTO done SELECT id, 1 FROM jobs WHERE id < 3 FOR SHARE")
        again = "SELECT id FROM jobs WHERE id < 4 ORDER BY id FOR UPDATE SKIP LOCKED"
        assert (await node.session().execute(again))[0].fetch_rows() == [(3,)]
        await node.sql("COMMIT")
        assert await node.rows("WITH d AS (SELECT id FROM done FOR UPDATE) TABLE d") == [(1,), (2,)]

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate", "words"),
    [
        (f"UPDATE jobs SET tries = 1 WHERE id = ({NEXT})", "21000", "more than one row"),
        (
            "DELETE FROM jobs WHERE id IN (SELECT max(id) FROM jobs FOR UPDATE)",
            "0A000",
            "aggregate",
        ),
        (
            "DELETE FROM done WHERE EXISTS (SELECT 1 FROM jobs WHERE jobs.id = done.id FOR UPDATE)",
            "42P01",
            "done",
        ),
        (
            "WITH d AS (DELETE FROM done RETURNING id) DELETE FROM jobs WHERE id IN "
            "(SELECT jobs.id FROM jobs, d WHERE jobs.id = d.id FOR UPDATE OF jobs)",
            "0A000",
            "a part of WITH that writes",
        ),
        (
            "INSERT INTO done SELECT 1, 1 FROM done UNION SELECT 2, 2 FROM jobs FOR UPDATE",
            "0A000",
            "",
        ),
        ("WITH n AS (SELECT 1 AS id) SELECT * FROM n FOR UPDATE", "0A000", "a WITH query"),
        ("BEGIN READ ONLY; WITH n AS (SELECT 1 FROM jobs FOR UPDATE) TABLE n", "25006", ""),
    ],
)
def test_what_is_not_locked_within_a_statement(text: str, sqlstate: str, words: str) -> None:
    async def scenario(node: SqlNode) -> None:
        error = await node.error(text)
        assert (error.sqlstate, words in error.message) == (sqlstate, True), error

    run(scenario)


def test_of_a_join_with_parts_of_with_the_tables_are_locked() -> None:
    async def scenario(node: SqlNode) -> None:
        joined = "JOIN n ON n.id = jobs.id FOR UPDATE"
        taken = f"WITH n AS (SELECT 4 AS id) SELECT jobs.id FROM jobs {joined}"
        assert await node.rows(f"BEGIN; {taken}") == [(4,)]
        assert await node.rows(
            "WITH n AS (SELECT id FROM jobs WHERE id = 5 FOR UPDATE), "
            f"m AS (SELECT jobs.id FROM jobs {joined}) "
            "DELETE FROM jobs USING m WHERE m.id = jobs.id RETURNING jobs.id"
        ) == [(5,)]
        others = "SELECT id FROM jobs WHERE id BETWEEN 3 AND 6 ORDER BY id FOR UPDATE SKIP LOCKED"
        assert (await node.session().execute(others))[0].fetch_rows() == [(3,), (6,)]

    run(scenario)


def test_who_locks_within_a_statement_needs_update() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql(
            "CREATE USER worker; GRANT SELECT ON jobs TO worker; GRANT INSERT ON done TO worker"
        )
        worker = node.session(user="worker")
        copy = "INSERT INTO done SELECT id, 1 FROM jobs WHERE id = 1"
        with pytest.raises(SQLError, match="does not have UPDATE") as refused:
            await worker.execute(f"{copy} FOR UPDATE")
        assert refused.value.sqlstate == "42501"
        await worker.execute(copy)

    run(scenario)


def test_a_job_behind_many_that_are_taken_is_found() -> None:
    async def scenario(node: SqlNode) -> None:
        await node.sql("INSERT INTO jobs (id) SELECT i FROM generate_series(100, 999) AS i")
        first, second = node.session(), node.session()
        queue = (
            "SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT {} FOR UPDATE SKIP LOCKED"
        )
        await first.execute("BEGIN")
        await first.execute(queue.format(600))
        await second.execute("BEGIN")
        (found,) = await second.execute(queue.format("2 OFFSET 1"))
        assert found.fetch_rows() == [(677,), (678,)]
        (rest,) = await second.execute(queue.format(1000))
        assert len(rest.fetch_rows()) == JOB_COUNT + 900 - 600
        for session in (first, second):
            await session.execute("ROLLBACK")

    run(scenario)
