"""current_setting() and set_config(): the session's variables within expressions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

CURRENT = "SELECT current_setting('statement_timeout')"
SET = "SELECT set_config('statement_timeout', '5s', false)"
SET_LOCAL = "SELECT set_config('statement_timeout', '5s', true)"


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (id INT8 PRIMARY KEY)")
            await node.sql("INSERT INTO t VALUES (1), (2)")
            await scenario(node)

    sim = Simulation(11)
    sim.run(whole())


def test_what_set_config_sets_is_what_show_and_current_setting_tell() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(CURRENT) == [("0",)]
        assert await node.rows(SET) == [("5s",)]
        assert await node.rows("SHOW statement_timeout") == [("5s",)]
        await node.sql("SET statement_timeout = '7s'")
        read = "SELECT id, pg_catalog.current_setting('statement_timeout') FROM t ORDER BY id"
        assert await node.rows(read) == [(1, "7s"), (2, "7s")]
        listed = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        assert await node.rows(listed) == [("7s",)]
        assert await node.rows("SELECT set_config('statement_timeout', NULL, false)") == [("0",)]

    run(scenario)


def test_arguments_are_evaluated_from_left_to_right_and_may_be_parameters() -> None:
    async def scenario(node: SqlNode) -> None:
        both = "SELECT current_setting($1) AS old, set_config($1, $2, false) AS new"
        assert await node.rows(both, "application_name", "one") == [("", "one")]
        assert await node.rows(both, "application_name", "two") == [("one", "two")]

    run(scenario)


def test_a_local_setting_ends_with_its_transaction() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(SET_LOCAL) == [("5s",)]
        assert await node.rows(CURRENT) == [("0",)]
        await node.sql("BEGIN")
        await node.sql(SET_LOCAL)
        assert await node.rows(CURRENT) == [("5s",)]
        await node.sql("COMMIT")
        assert await node.rows(CURRENT) == [("0",)]

    run(scenario)


@pytest.mark.parametrize("begin", [False, True])
def test_a_setting_goes_with_the_statement_or_transaction_that_fails(*, begin: bool) -> None:
    async def scenario(node: SqlNode) -> None:
        if begin:
            await node.sql("BEGIN")
        with pytest.raises(SQLError, match="division by zero"):
            await node.sql(f"{SET}, 1 / (id - 1) FROM t")
        if begin:
            await node.sql("ROLLBACK")
        assert await node.rows(CURRENT) == [("0",)]

    run(scenario)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("SELECT current_setting('nobody.knows')", "42704"),
        ("SELECT current_setting('nobody.knows', false)", "42704"),
        ("SELECT set_config('nobody.knows', 'x', false)", "42704"),
        ("SELECT set_config('jit', 'on', false)", "22023"),
        ("SELECT set_config('server_version', '16', false)", "55P02"),
        ("SELECT set_config(NULL, 'on', false)", "22004"),
        ("SELECT set_config('jit')", "42883"),
        ("SELECT current_setting(id::STRING) FROM t", "42704"),
    ],
)
def test_what_cannot_be_set_or_told_is_refused(text: str, sqlstate: str) -> None:
    async def scenario(node: SqlNode) -> None:
        with pytest.raises(SQLError) as refused:
            await node.sql(text)
        assert refused.value.sqlstate == sqlstate

    run(scenario)


def test_an_unknown_name_may_be_null() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT current_setting('nobody.knows', true)") == [(None,)]
        assert await node.rows("SELECT current_setting(NULL)") == [(None,)]

    run(scenario)
