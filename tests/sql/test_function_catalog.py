"""pg_proc, pg_operator and pg_cast list what expressions have."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


def run(scenario: Callable[[SqlNode], Awaitable[None]]) -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await scenario(node)

    sim.run(main())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lower", [("text", "text", "f")]),
        ("concat", [("VARIADIC any", "text", "f")]),
        ("pg_advisory_lock", [("bigint", "void", "f")]),
        ("count", [("", "bigint", "a"), ("any", "bigint", "a")]),
    ],
)  # fmt: skip
def test_functions_are_listed_as_psql_shows_them(name: str, told: list[tuple[str, ...]]) -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(
            "SELECT pg_get_function_arguments(oid), pg_get_function_result(oid), prokind "
            f"FROM pg_proc WHERE proname = '{name}' ORDER BY 1"
        ) == list(told)

    run(scenario)


def test_all_of_them_are_of_pg_catalog_and_have_ids_of_their_own() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(
            "SELECT count(*) > 150, count(*) = count(DISTINCT p.oid), min(n.nspname), "
            "max(n.nspname) FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace"
        ) == [(True, True, "pg_catalog", "pg_catalog")]
        assert await node.rows(
            "SELECT count(*) = count(DISTINCT oid) FROM pg_operator"
        ) == [(True,)]  # fmt: skip
        assert await node.rows(
            "SELECT count(*) FROM pg_proc AS p LEFT JOIN pg_type AS t ON t.oid = p.prorettype "
            "WHERE t.oid IS NULL"
        ) == [(0,)]

    run(scenario)


def test_operators_and_casts_are_listed_by_their_types() -> None:
    async def scenario(node: SqlNode) -> None:
        assert await node.rows(
            "SELECT format_type(oprleft, NULL), format_type(oprright, NULL), "
            "format_type(oprresult, NULL) FROM pg_operator WHERE oprname = '~' ORDER BY 1"
        ) == [("text", "text", "boolean")]
        casts = (
            "SELECT castcontext FROM pg_cast WHERE castsource = '{}'::regtype "
            "AND casttarget = '{}'::regtype"
        )
        for source, target, context in (
            ("bigint", "numeric", "i"),
            ("numeric", "bigint", "a"),
            ("bigint", "boolean", "e"),
        ):
            assert await node.rows(casts.format(source, target)) == [(context,)]
        assert await node.rows(casts.format("date", "bigint")) == []

    run(scenario)


def test_fuzzers_find_what_they_call_and_nothing_of_ours() -> None:
    """sqlsmith ends where there is no type `internal`, and calls every function that is listed."""

    async def scenario(node: SqlNode) -> None:
        assert await node.rows("SELECT typtype FROM pg_type WHERE typname = 'internal'") == [("p",)]
        ours = (
            "SELECT proname FROM pg_proc WHERE proname LIKE '%digits' OR proname LIKE '%split_rows'"
        )
        assert await node.rows(ours) == []

    run(scenario)
