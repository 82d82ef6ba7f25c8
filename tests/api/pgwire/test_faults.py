"""What nobody foresaw ends its statement, and not the connection of its client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from unittest.mock import patch

import pytest

from tests.api.pgwire.test_conversation import (
    DESCRIBE,
    SYNC,
    at_door,
    bind,
    execute,
    kinds,
    parse,
)
from tests.harness.pg_door import PgDoor, WireClient, WireError

EXECUTION = "tailrace.sql.session.session.run_planned"
PLANNING = "tailrace.sql.session.prepared.plan_statement"
ROWS = "tailrace.api.pgwire.portals._rows_of"
READING = "tailrace.api.pgwire.copying.make_reader"
WRITING = "tailrace.api.pgwire.copying.make_writer"

FAULT = RuntimeError("a fault of ours")

Work = Callable[[WireClient], Awaitable[None]]


def with_faults(work: Work) -> list[BaseException]:
    """What the loop's handler was told, the client having gone on behind it."""
    told: list[BaseException] = []

    async def run(_: PgDoor, client: WireClient) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        await work(client)
        await client.query("INSERT INTO t VALUES (7, 'alive')")
        assert await client.query("SELECT note FROM t WHERE id = 7") == [("alive",)]

    at_door(run)
    return told


async def refused(client: WireClient, text: str) -> None:
    with pytest.raises(WireError) as caught:
        await client.query(text)
    assert caught.value.fields["C"] == "XX000"
    assert caught.value.fields["S"] == "ERROR"


def test_fault_of_a_statement_is_its_error() -> None:
    async def work(client: WireClient) -> None:
        with patch(EXECUTION, side_effect=FAULT):
            await refused(client, "SELECT 1")

    assert with_faults(work) == [FAULT]


def test_fault_in_a_transaction_fails_the_transaction() -> None:
    async def work(client: WireClient) -> None:
        await client.query("BEGIN; INSERT INTO t VALUES (1, 'a')")
        with patch(EXECUTION, side_effect=FAULT):
            await refused(client, "SELECT 1")
        with pytest.raises(WireError) as caught:
            await client.query("SELECT 1")
        assert caught.value.sqlstate == "25P02"
        await client.query("ROLLBACK")
        assert await client.query("SELECT * FROM t") == []

    with_faults(work)


@pytest.mark.parametrize(
    ("fault", "answers"), [(PLANNING, "EZ"), (EXECUTION, "12TEZ"), (ROWS, "12TEZ")]
)
def test_fault_in_a_pipeline_skips_to_its_sync(fault: str, answers: str) -> None:
    async def work(client: WireClient) -> None:
        pipeline = parse("SELECT id FROM t WHERE id = $1") + bind(b"1") + DESCRIBE + execute()
        with patch(fault, side_effect=FAULT):
            client.raw(pipeline + SYNC)
            assert await kinds(client) == answers
        client.raw(pipeline + SYNC)
        assert await kinds(client) == "12TCZ"

    assert with_faults(work) == [FAULT]


@pytest.mark.parametrize("copy", ["COPY t FROM STDIN", "COPY t TO STDOUT"])
def test_fault_in_a_copy_is_its_error(copy: str) -> None:
    async def work(client: WireClient) -> None:
        with patch(READING, side_effect=FAULT), patch(WRITING, side_effect=FAULT):
            await refused(client, copy)

    assert with_faults(work) == [FAULT]


def test_fault_in_a_cursor_is_its_error() -> None:
    async def work(client: WireClient) -> None:
        with patch(EXECUTION, side_effect=FAULT):
            await refused(client, "BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH c")
        await client.query("ROLLBACK")

    assert with_faults(work) == [FAULT]


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT * FROM (t JOIN t USING (id))", "42712"),
        ("SELECT * FROM t, t", "42712"),
        ("SELECT 'a'::text @@ 'b'::text", "0A000"),
        ("SELECT () IN (())", "42601"),
        ("SELECT NULL NOT IN ()", "42601"),
        (f"SELECT {'9' * 4301}", "22003"),
        (f"SELECT 1 LIMIT {'9' * 4301}", "22003"),
        (f"SELECT format('%{'9' * 4301}s', 1)", "0A000"),
        (f"SELECT format(note, 1) FROM (SELECT '%{'9' * 4301}s' AS note) AS p", "0A000"),
        (f"CREATE TABLE v (a VARCHAR({'9' * 4301}))", "22003"),
    ],
    ids=lambda given: given[:40],
)
def test_statement_that_ended_connections_has_its_sqlstate(text: str, sqlstate: str) -> None:
    async def work(client: WireClient) -> None:
        with pytest.raises(WireError) as caught:
            await client.query(text)
        assert caught.value.sqlstate == sqlstate
        client.raw(parse(text) + bind() + execute() + SYNC)
        assert (await kinds(client)).endswith("EZ")

    assert with_faults(work) == []


def test_copy_takes_no_parameters() -> None:
    async def work(client: WireClient) -> None:
        client.raw(parse("COPY (SELECT $1::int) TO STDOUT") + bind(b"1") + execute() + SYNC)
        frames = await client.until_ready()
        assert WireError(frames[0][1]).sqlstate == "42P02"

    assert with_faults(work) == []


def test_one_derived_table_needs_no_alias() -> None:
    async def work(client: WireClient) -> None:
        query = "SELECT * FROM (SELECT 1 AS x), (VALUES (2)) v, unnest(ARRAY[4]) u"
        assert await client.query(query) == [("1", "2", "4")]
        with pytest.raises(WireError) as caught:
            await client.query("SELECT * FROM (SELECT 1 AS x), unnest(ARRAY[4])")
        assert caught.value.sqlstate == "42712"

    assert with_faults(work) == []
