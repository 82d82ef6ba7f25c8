"""Many rows of constants are stored, and refused, as each row by itself is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = (
    "(k INT8 PRIMARY KEY, i INT8, d DECIMAL(10,2), f FLOAT8, s TEXT DEFAULT 'none', b BOOL,"
    " t TIMESTAMPTZ, j JSONB)"
)
ROWS = [
    "-9223372036854775808, 15, 1e3, -0.0, 'it''s', TRUE, '2024-01-01', '{\"a\": 1}'",
    "-1, NULL, -1.005, 'NaN', NULL, FALSE, NULL, '[]'",
    "-2, 1, 1, 1, -0020260101, TRUE, NULL, '1'",
    "0, '7', 12345678.9, 1, '', 'yes', '2030-06-01 12:00', 'null'",
]
MANY = [
    f"{k}, {k}, {k}.25, -{k}, 'row {k}', true, '2024-01-01 00:00:{k:02}+01', '1'"
    for k in range(1, 60)
]


def run(work: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def main(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql(f"CREATE TABLE one {TABLE}")
            await node.sql(f"CREATE TABLE many {TABLE}")
            await work(node)

    sim = Simulation(1)
    sim.run(main(sim))


def values(rows: list[str]) -> str:
    return ", ".join(f"({row})" for row in rows)


def test_rows_are_stored_as_one_by_one() -> None:
    async def work(node: SqlNode) -> None:
        for row in [*ROWS, *MANY]:
            await node.sql(f"INSERT INTO one VALUES ({row})")
        await node.sql(f"INSERT INTO many VALUES {values([*ROWS, *MANY])}")
        one = await node.rows("SELECT * FROM one ORDER BY k")
        assert repr(await node.rows("SELECT * FROM many ORDER BY k")) == repr(one)

    run(work)


def test_whole_numbers_become_text() -> None:
    """As Rails writes the versions of its migrations; no plan of one number is another's."""

    async def work(node: SqlNode) -> None:
        for number in (20260101, 20260102):
            await node.sql(f"INSERT INTO one (k, s) VALUES ({number}, {number})")
        await node.sql("UPDATE one SET s = 7 WHERE k = 20260102")
        await node.sql("INSERT INTO one (k, s) VALUES (1, $1::INT8)", None)
        found = await node.rows("SELECT k, s FROM one ORDER BY k")
        assert found == [(1, None), (20260101, "20260101"), (20260102, "7")]

    run(work)


def test_columns_that_are_not_named_take_their_defaults() -> None:
    async def work(node: SqlNode) -> None:
        rows = ", ".join(f"('{k}', {k})" for k in range(60))
        await node.sql(f"INSERT INTO many (i, k) VALUES {rows} ON CONFLICT (k) DO NOTHING")
        assert await node.rows("SELECT i, s FROM many WHERE k = 59") == [(59, "none")]
        await node.sql("CREATE TABLE drawn (u UUID DEFAULT gen_random_uuid(), k INT8)")
        await node.sql(f"INSERT INTO drawn (k) VALUES {', '.join(f'({k})' for k in range(60))}")
        assert await node.rows("SELECT count(DISTINCT u) FROM drawn") == [(60,)]

    run(work)


def test_the_first_wrong_row_is_told() -> None:
    """Whichever of its columns is wrong: columns are read one by one."""

    async def work(node: SqlNode) -> None:
        rows = [f"{k}, {k}, '{k}'" for k in range(60)]
        wrong = ["60, 1, NULL", "61, '1x', '1'", "'62x', 1, '1'"]
        await node.sql("CREATE TABLE strict (k INT8 PRIMARY KEY, i INT8, s TEXT NOT NULL)")
        for row, sqlstate in ((wrong[1:], "22P02"), (wrong[:1] + rows[:1], "23502")):
            text = f"INSERT INTO strict VALUES {values([*rows, *row])}"
            with pytest.raises(SQLError) as caught:
                await node.sql(text)
            assert caught.value.sqlstate == sqlstate
            if sqlstate == "22P02":
                assert caught.value.position == text.index("'1x'") + 1

    run(work)


@pytest.mark.parametrize(
    ("row", "sqlstate"),
    [
        ("100, 'seven'", "22P02"),
        ("101, 1e30", "22003"),
        ("102, true", "42804"),
        ("103", "42601"),
        ("104, 1, 2", "42601"),
        ("100, 1, junk", "42601"),
    ],
)
def test_a_wrong_row_is_told_as_by_itself(row: str, sqlstate: str) -> None:
    async def work(node: SqlNode) -> None:
        rows = [f"{k}, {k}" for k in range(60)]
        text = f"INSERT INTO many (k, i) VALUES {values([*rows, row])}"
        with pytest.raises(SQLError) as caught:
            await node.sql(text)
        assert caught.value.sqlstate == sqlstate
        if sqlstate.startswith("22"):
            assert caught.value.position == text.index(row) + row.index(" ") + 2
        assert await node.rows("SELECT count(*) FROM many") == [(0,)]

    run(work)
