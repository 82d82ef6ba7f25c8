"""EXPLAIN ANALYZE carries a statement out and says who did what."""

from __future__ import annotations

from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


async def prepare(node: SqlNode) -> None:
    await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
    await node.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")


async def analyzed(node: SqlNode, text: str) -> dict[object, object]:
    return dict(await node.rows(f"EXPLAIN ANALYZE {text}"))  # type: ignore[arg-type]


def test_analyze_counts_rows_of_each_engine() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            told = await analyzed(node, "SELECT v, count(*) FROM t GROUP BY v")
            assert told["engine"] == "duckdb over a snapshot"
            assert str(told["read"]).startswith("full scan: 3 rows, ")
            assert told["rows"] == "3"
            assert str(told["total"]).endswith(" ms")
            told = await analyzed(node, "SELECT * FROM t WHERE k = 2")
            assert (told["engine"], told["rows"]) == ("native: point reads", "1")
            told = await analyzed(node, "SELECT count(*) FROM t WHERE k > 1")
            assert str(told["read"]).startswith("key range scan: 2 rows, ")

    sim.run(main())


def test_options_in_parentheses() -> None:
    sim = Simulation(3)

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            for text in ("(ANALYZE) DELETE", "ANALYZE DELETE"):
                told = await node.rows(f"EXPLAIN {text} FROM t WHERE k = 1")
                assert "rows written" in {row[0] for row in told}
            assert await node.rows("SELECT count(*) FROM t") == [(2,)]
            await node.sql("EXPLAIN DELETE FROM t; EXPLAIN (SELECT k FROM t)")
            assert await node.rows("SELECT count(*) FROM t") == [(2,)]

    sim.run(main())


def test_analyze_carries_out_what_writes() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            told = await analyzed(node, "UPDATE t SET v = v + 1 WHERE k < 3")
            assert told["rows written"] == "2"
            assert await node.rows("SELECT sum(v) FROM t") == [(62,)]
            await node.sql("BEGIN READ ONLY")
            error = await node.error("EXPLAIN ANALYZE DELETE FROM t")
            assert error.sqlstate == "25006"
            await node.sql("ROLLBACK")

    sim.run(main())


def test_a_with_that_writes_is_told_by_its_last_part() -> None:
    sim = Simulation(4)

    async def main() -> None:
        async with sql_node(sim) as node:
            await prepare(node)
            await node.sql("CREATE TABLE u (k INT8 PRIMARY KEY, v INT8)")
            text = (
                "WITH gone AS (DELETE FROM t WHERE k = 2 RETURNING *) "
                "INSERT INTO u SELECT * FROM gone"
            )
            told = await node.rows(f"EXPLAIN {text}")
            assert told[0] == ("engine", "duckdb over a snapshot")
            assert {told[1], told[2]} == {("table", "t"), ("table", "u")}
            assert await node.rows("SELECT count(*) FROM t") == [(3,)]
            assert (await analyzed(node, text))["rows written"] == "1"
            assert await node.rows("SELECT * FROM u") == [(2, 20)]

    sim.run(main())
