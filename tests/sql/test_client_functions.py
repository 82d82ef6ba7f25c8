"""What clients ask and set at start-up, and between two uses of a connection."""

from __future__ import annotations

import pytest

from tailrace.sql import Session
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node


def test_sessions_know_who_and_where_they_are() -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE DATABASE shop")
            session = Session(node.services, database="shop", user="ada")
            text = (
                "SELECT current_user, session_user, current_database(), current_schema(), "
                "pg_catalog.version() LIKE 'PostgreSQL 15%'"
            )
            for _ in range(2):
                (result,) = await session.execute(text)
                assert result.fetch_rows() == [("ada", "ada", "shop", "public", True)]
            names = [column.name for column in result.columns][:4]
            assert names == ["current_user", "session_user", "current_database", "current_schema"]
            await session.close()
            assert await node.rows("SELECT current_user, current_database()") == [
                ("root", "defaultdb")
            ]

    sim = Simulation(1)
    sim.run(run())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("SET client_encoding = 'utf-8'; SHOW client_encoding", "UTF8"),
        ("SET DateStyle = 'ISO'; SHOW datestyle", "ISO, MDY"),
        ("SET DateStyle = 'ISO, DMY'; SHOW datestyle", "ISO, DMY"),
        ("SET extra_float_digits = 3; SHOW extra_float_digits", "3"),
        ("SET application_name = 'x'; DISCARD ALL; SHOW application_name", ""),
        ("SHOW server_version_num", "150008"),
    ],
)
def test_variables_of_postgres_are_known(text: str, shown: str) -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            assert await node.rows(text) == [(shown,)]

    sim = Simulation(1)
    sim.run(run())


def test_a_setting_that_would_lie_is_refused() -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            for text in (
                "SET TimeZone = 'Mars/Base'",
                "SET client_encoding = 'latin1'",
                "SET standard_conforming_strings = off",
                "SET DateStyle = 'SQL, DMY'",
                "SET IntervalStyle = 'sql_standard'",
                "SET bytea_output = 'escape'",
            ):
                assert (await node.error(text)).sqlstate == "22023", text
            assert (await node.error("SET server_version = '9'")).sqlstate == "55P02"

    sim = Simulation(1)
    sim.run(run())


def test_discard_all_forgets_what_was_prepared() -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            await node.sql("PREPARE p AS SELECT 1")
            await node.sql("CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all()")
            assert await node.rows("EXECUTE p") == [(1,)]
            await node.sql("DISCARD ALL")
            assert (await node.error("EXECUTE p")).sqlstate == "26000"
            assert (await node.error("BEGIN; DISCARD ALL")).sqlstate == "25001"

    sim = Simulation(1)
    sim.run(run())
