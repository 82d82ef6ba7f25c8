"""Texts that differ in their numbers share a plan, and nothing else can be told of it."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.runtime.plan_cache import PlanCache, shape_of
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TEXTS = (
    "SELECT v, n FROM t WHERE k = {}",
    "SELECT * FROM t WHERE k IN ({}, {}) AND v < {}",
    "SELECT k FROM t WHERE k = {} + 1",
    "SELECT v FROM t WHERE v = {} AND n > -{}",
    "SELECT count(*) FROM t WHERE k BETWEEN {} AND {}",
    "SELECT k, {} FROM t WHERE k = 3",
    "SELECT k + {} AS x, n * {} + {} FROM t WHERE k < {}",
    "SELECT n + {}, v - {}, d * {} FROM t WHERE n > {} OR d < {}",
    'SELECT x."k" + {}, y.v FROM t x JOIN t y ON x.k = y.k AND y.n < {} WHERE x.v <> {}',
    "SELECT n + {} FROM t WHERE v > {} GROUP BY n + {}",
    "SELECT count(*), sum(n) FROM t WHERE n BETWEEN {} AND {} AND v IN ({}, {})",
    "SELECT n / {} FROM t WHERE n % {} = {}",
    "DELETE FROM t WHERE n = {}",
    "SELECT k FROM t WHERE k > {} ORDER BY 1 LIMIT {}",
    "UPDATE t SET v = v + {}, n = -{} WHERE k = {}",
    "UPDATE t SET v = {} WHERE v = {}",
    "UPDATE t SET v = {} + {} WHERE k = {}",
    "UPDATE t SET v = {} WHERE k = {}",
    "UPDATE t SET d = {} * v WHERE k = {} RETURNING d, k",
    "UPDATE t SET n = n * {} WHERE k = {} OR v = {}",
    "DELETE FROM t WHERE k = {} AND v > {}",
    "INSERT INTO t (k, v, n) VALUES ({}, {}, -{})",
    "INSERT INTO t VALUES ({}, {}, {}, {}), ({}, 1, 2, 3)",
    "INSERT INTO t (k, nothing) VALUES ({}, {})",
    "SELECT v FROM t WHERE k = {} AND nothing = {}",
    "SELECT * FROM t WHERE k = {}.5",
    "UPSERT INTO t (k, v) VALUES ({}, {})",
)


async def told(node: SqlNode, text: str) -> object:
    try:
        result = await node.sql(text)
    except SQLError as error:
        return error.sqlstate, error.message, error.detail, error.position
    return result.tag, [column.name for column in result.columns], result.fetch_rows()


@pytest.mark.parametrize("seed", range(2))
def test_shapes_change_no_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same texts, with shapes and each for itself."""
    random = Random(seed)
    numbers = [0, 1, 2, 3, 4, 5, 10, 30, 99, 40_000, 2**31, 2**63 - 1]
    texts = []
    for _ in range(150):
        pattern = random.choice(TEXTS)
        texts.append(pattern.format(*random.choices(numbers, k=pattern.count("{}"))))

    async def answers() -> list[object]:
        async with sql_node(Simulation(seed)) as node:
            await node.sql(
                "CREATE TABLE t (k INT8 PRIMARY KEY, v INT4 CHECK (v < 1000), n INT8,"
                " d DECIMAL(12,2))"
            )
            return [await told(node, text) for text in texts]

    ours = Simulation(seed).run(answers())
    monkeypatch.setattr(PlanCache, "prepare", PlanCache.read)
    theirs = Simulation(seed).run(answers())
    for text, our, their in zip(texts, ours, theirs, strict=True):
        assert our == their, text


def test_texts_of_one_shape_share_a_plan() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8)")
            await node.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
            assert await node.rows("SELECT v FROM t WHERE k = 1") == [(10,)]
            prepare = node.services.plans.prepare
            plan = prepare("SELECT v FROM t WHERE k = 2").kept(0, "defaultdb")
            assert plan is not None
            assert await node.rows("SELECT v FROM t WHERE k = 2") == [(20,)]
            assert prepare("SELECT v FROM t WHERE k = 7").kept(0, "defaultdb") is plan
            assert await node.rows("SELECT k FROM t WHERE v = 10") == [(1,)]
            assert await node.rows("SELECT k FROM t WHERE v = 20") == [(2,)], "by DuckDB"
            one, other = [
                prepare(f"SELECT k FROM t WHERE v = {v}").kept(0, "defaultdb") for v in (30, 40)
            ]
            assert one is not None and one is other

    sim.run(main())


def test_a_number_beside_another_type_is_of_one_text() -> None:
    """DuckDB's DECIMAL meets a number otherwise than it meets a BIGINT."""
    sim = Simulation(1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, d DECIMAL(12,2))")
            await node.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
            assert await node.rows("SELECT k FROM t WHERE d < 15") == [(1,)]
            assert await node.rows("SELECT k FROM t WHERE d < 25") == [(1,), (2,)]
            await node.sql("UPDATE t SET d = d * 3 WHERE d > 15")
            await node.sql("UPDATE t SET d = d * 2 WHERE d > 55")
            assert await node.rows("SELECT sum(d) FROM t") == [(Decimal(130),)]

    sim.run(main())


def test_a_new_version_of_the_table_is_planned_for_anew() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v INT8 NOT NULL)")
            await node.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
            assert await node.rows("SELECT v FROM t WHERE k = 1") == [(10,)]
            await node.sql("ALTER TABLE t ALTER PRIMARY KEY USING COLUMNS (v)")
            # There is a plan for DuckDB now, with the numbers of one text.
            assert await node.rows("SELECT v FROM t WHERE k = 2") == [(20,)]
            assert await node.rows("SELECT v FROM t WHERE k = 1") == [(10,)]

    sim.run(main())


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("SELECT a1 FROM t2 WHERE b = 17", "SELECT a1 FROM t2 WHERE b = 00"),
        ("VALUES (1,-22)", "VALUES (0,-00)"),
        ('SELECT a FROM "t 1" WHERE b = 1', 'SELECT a FROM "t 1" WHERE b = 0'),
        ('SELECT a FROM t WHERE b = 1 AND "t', None),
        ("SELECT 'x1', 2", None),
        ("SELECT 1.5", None),
        ("SELECT 0x1F", None),
        ("SELECT $1, 2", None),
        ("SELECT 1 -- 2", None),
        ("SELECT 99999999999999999999", None),
        ("SELECT a FROM t", None),
    ],
)
def test_only_numbers_lose_their_digits(text: str, shape: str | None) -> None:
    found = shape_of(text)
    assert (None if found is None else found.text) == shape
