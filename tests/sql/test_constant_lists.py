"""A long IN list of constants and parameters means what each of them by itself means."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

import pytest
from sqlglot import exp

from tailrace.catalog.values.column_types import INT8, STRING, array_of, coerce
from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import parse
from tailrace.sql.parse.constants import LIST, written_out
from tailrace.sql.plan.planner import plan_statement
from tailrace.sql.plan.plans import DeletePlan, SelectPlan, UpdatePlan
from tailrace.sql.syntax.statements import Delete, Explain, Query, Update
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = (
    "CREATE TABLE t (k INT8 PRIMARY KEY, i INT8, s TEXT, c CHAR(4), d DATE, n DECIMAL(8,2),"
    " f FLOAT8, u UUID, m INT8, INDEX (i), INDEX (s))"
)
ROWS = 60


def uuid(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"


def run(work: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def main(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            rows = ", ".join(
                f"({k}, {k * 2}, 'it''s {k}', 'c{k}', DATE '2024-01-01' + {k}, {k}.5, {k}, "
                f"'{uuid(k)}')"
                for k in range(ROWS)
            )
            await node.sql(f"INSERT INTO t VALUES {rows}")
            await node.sql("INSERT INTO t (k) VALUES (1000)")
            await work(node)

    sim = Simulation(1)
    sim.run(main(sim))


NUMBERS = ", ".join(str(number) for number in [5, 7, -3, 7, *range(1001, 1400)])
TEXTS = ", ".join(["'it''s 5'", "'it''s 7'", *(f"'{'x' * 20}{n}'" for n in range(60))])


def parameters(count: int) -> str:
    return ", ".join(f"${number}" for number in range(1, count + 1))


def keys_of(text: str) -> list[int]:
    (statement,) = parse(text).statements
    assert isinstance(statement, Query | Delete)
    tree = statement.tree if isinstance(statement, Query) else statement.where
    assert tree is not None
    return [len(node.expressions) for node in tree.find_all(exp.In)]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (f"k IN ({NUMBERS})", [5, 7]),
        (f"k IN({NUMBERS}) AND i > 10", [7]),
        (f"(s) IN (\n{TEXTS} )", [5, 7]),
        (f"k NOT IN ({NUMBERS}) AND k < 9", [0, 1, 2, 3, 4, 6, 8]),
        (f"k IN ({NUMBERS}) OR k = 9", [5, 7, 9]),
        (f"i IN ({NUMBERS.replace('5', '10', 1)})", [5]),
        (f"i + 0 IN ({NUMBERS.replace('5', '10', 1)})", [5]),
        (f"NOT (k NOT IN ({NUMBERS}))", [5, 7]),
        (f"k IN (SELECT k FROM t WHERE k IN ({NUMBERS}))", [5, 7]),
        (f"f IN ({NUMBERS})", [5, 7]),
        (f"n IN ({NUMBERS}, 7.5)", [7]),
        (f"n - 0.5 IN ({NUMBERS})", [5, 7]),
        (f"k IN ({NUMBERS}, NULL)", [5, 7]),
        (f"k NOT IN ({NUMBERS}, NULL)", []),
        (f"k IN (5, null, '7', {NUMBERS})", [5, 7]),
        (f"n IN ('5.5', {NUMBERS}, NULL)", [5]),
        (f"s IN ({TEXTS}, NULL)", [5, 7]),
        (f"s IN ({TEXTS}) AND k IN ({NUMBERS}) AND f = 7", [7]),
        (f"7 IN ({NUMBERS}) AND k = 3", [3]),
        (f"k IN ({', '.join(repr(str(n)) for n in [5, 7, *range(1001, 1400)])})", [5, 7]),
        (f"c IN ({', '.join(repr(f'c{n}  ') for n in [5, 7, *range(100, 300)])})", [5, 7]),
        (f"c IN ({', '.join(repr(f'c{n}') for n in [5, 7, *range(100, 300)])})", [5, 7]),
        (f"d IN ({', '.join(repr(f'2024-01-{n:02}') for n in [6, 8] * 60)})", [5, 7]),
        (f"u IN ({', '.join(repr(uuid(n)) for n in [5, 7, *range(100, 160)])})", [5, 7]),
    ],
)  # fmt: skip
def test_a_list_finds_what_it_names(condition: str, found: list[int]) -> None:
    async def work(node: SqlNode) -> None:
        expected = [(key,) for key in found]
        assert await node.rows(f"SELECT k FROM t WHERE {condition} ORDER BY k") == expected
        count = f"SELECT count(*) FROM t WHERE {condition}"
        assert await node.rows(count) == [(len(found),)]
        await node.sql(f"UPDATE t SET m = 1 WHERE {condition}")
        assert await node.rows("SELECT k FROM t WHERE m = 1 ORDER BY k") == expected
        await node.sql(f"DELETE FROM t WHERE {condition}")
        assert await node.rows("SELECT count(*) FROM t WHERE m = 1") == [(0,)]
        assert await node.rows("SELECT count(*) FROM t") == [(ROWS + 1 - len(found),)]

    run(work)


def test_lists_are_kept_where_keys_are_looked_up() -> None:
    assert keys_of(f"SELECT k FROM t WHERE k IN ({NUMBERS})") == [1]
    assert keys_of(f"DELETE FROM t WHERE (k IN ({NUMBERS})) AND s IN ({TEXTS})") == [1, 1]
    assert keys_of(f"SELECT k FROM t WHERE NOT k IN ({NUMBERS})") == [403]
    assert keys_of(f"SELECT k IN ({NUMBERS}) FROM t WHERE k IN (1, 2)") == [403, 2]
    assert keys_of(f"WITH w AS (SELECT 1) SELECT 1 WHERE 1 IN ({NUMBERS})") == [403]


def test_a_list_written_out_is_as_it_is_parsed() -> None:
    for listed in (NUMBERS, TEXTS, f"{NUMBERS}, NULL, 'x', $3, -1", f"{TEXTS}, null, $1"):
        text = f"DELETE FROM t WHERE k IN ({listed}) AND true"
        (short,) = parse(text).statements
        (whole,) = parse(f"EXPLAIN {text}").statements
        assert isinstance(short, Delete)
        assert isinstance(whole, Explain)
        assert isinstance(whole.statement, Delete)
        assert short.where is not None
        made = written_out(short.where)
        assert made == whole.statement.where
        node = made.find(exp.In)
        assert node is not None
        assert LIST not in node.meta
        starts = [text.index("(") + 1]
        literal = node.expressions[0]
        assert [literal.meta["start"]] == starts
        assert short.where.find(exp.In).meta[LIST].items()[:2] in (  # type: ignore[union-attr]
            [5, 7],
            ["it's 5", "it's 7"],
        )


def test_long_lists_of_keys_are_read_natively() -> None:
    async def work(node: SqlNode) -> None:
        for text in (
            f"SELECT i FROM t WHERE k IN ({NUMBERS})",
            f"DELETE FROM t WHERE k IN ({NUMBERS})",
            f"SELECT i FROM t WHERE k IN ({NUMBERS}, NULL, '9')",
            f"UPDATE t SET m = 1 WHERE k IN ({parameters(400)})",
        ):
            (statement,) = parse(text).statements
            assert isinstance(statement, Query | Delete | Update)
            reader = node.store.begin(read_only=True)
            (table, *_) = await node.services.catalog.list_tables(reader, "defaultdb")
            plan = plan_statement(statement, {("t",): table})
            assert isinstance(plan, SelectPlan | DeletePlan | UpdatePlan)
            read = plan.native if isinstance(plan, SelectPlan) else plan.finder
            assert read is not None
            assert read.access is not None
            assert read.access.points

    run(work)


@pytest.mark.parametrize(
    ("condition", "given", "found"),
    [
        (f"k IN ({parameters(400)})", [5, "7", None, *range(1001, 1398)], [5, 7]),
        (f"k IN (9, {parameters(400)}, NULL, '11')", [5, 7, *range(1001, 1399)], [5, 7, 9, 11]),
        (f"s IN ({parameters(400)})", ["it's 5", None, *["it's 7"] * 398], [5, 7]),
        (f"c IN ({parameters(400)})", ["c5  ", "c7", *["c 9"] * 398], [5, 7]),
        (f"n IN ({parameters(400)})", [Decimal("5.5"), "7.5", *[1] * 398], [5, 7]),
        (f"i IN ({parameters(400)})", [10, 14, *range(1001, 1399)], [5, 7]),
        (f"k NOT IN ({parameters(400)}) AND k < 7", [5, 6, *range(1001, 1399)], [0, 1, 2, 3, 4]),
        (f"k IN ({parameters(400)}) AND i = $1", [10, 5, *range(1001, 1399)], [5]),
    ],
)
def test_parameters_of_a_list_find_what_each_names(
    condition: str, given: list[object], found: list[int]
) -> None:
    async def work(node: SqlNode) -> None:
        expected = [(key,) for key in found]
        query = f"SELECT k FROM t WHERE {condition} ORDER BY k"
        assert await node.rows(query, *given) == expected
        session = node.session()
        prepared = await session.prepare(query)
        assert (await session.run(prepared, given)).fetch_rows() == expected
        changed = await session.prepare(f"UPDATE t SET m = 1 WHERE {condition}")
        assert (await session.run(changed, given)).row_count == len(found)
        assert await node.rows("SELECT k FROM t WHERE m = 1 ORDER BY k") == expected

    run(work)


def test_parameters_of_a_list_have_the_columns_type() -> None:
    async def work(node: SqlNode) -> None:
        session = node.session()
        listed = f"SELECT k FROM t WHERE {{}} IN ({parameters(400)})"
        assert (await session.prepare(listed.format("k"))).parameter_types == (INT8,) * 400
        assert (await session.prepare(listed.format("s"))).parameter_types == (STRING,) * 400
        declared = await session.prepare(listed.format("n"), [None, INT8])
        assert declared.parameter_types[1] == INT8
        given = [Decimal("5.5"), 7, *[Decimal("7.5")] * 398]
        assert (await session.run(declared, given)).fetch_rows() == [(5,), (7,)]
        with pytest.raises(SQLError) as caught:
            await session.prepare(listed.format("k"), [None, STRING])
        assert caught.value.sqlstate == "42883"

    run(work)


@pytest.mark.parametrize(
    ("condition", "wrong", "sqlstate"),
    [
        (f"k IN ('1', {TEXTS})", "'it''s 5'", "22P02"),
        (f"d IN ('2024-01-01', {TEXTS})", "'it''s 5'", "22007"),
        (f"u IN ('{uuid(1)}', {TEXTS})", "'it''s 5'", "22P02"),
        (f"k IN ({NUMBERS}, 12x)", "12x", "42601"),
        (f"k IN ({NUMBERS}, 5", None, "42601"),
        (f"nothing IN ({NUMBERS})", "nothing", "42703"),
        (f"s IN ('a', {NUMBERS})", None, "42883"),
        (f"s IN ({TEXTS}, 5)", None, "42883"),
    ],
)
def test_what_is_wrong_in_a_list_is_told_with_its_place(
    condition: str, wrong: str | None, sqlstate: str
) -> None:
    async def work(node: SqlNode) -> None:
        for text in (f"SELECT k FROM t WHERE {condition}", f"DELETE FROM t WHERE {condition}"):
            with pytest.raises(SQLError) as caught:
                await node.sql(text)
            assert caught.value.sqlstate == sqlstate
            if wrong is not None and sqlstate != "42601":
                assert caught.value.position == text.index(wrong) + 1

    run(work)


def test_a_list_behind_another_name_is_an_error() -> None:
    with pytest.raises(SQLError) as caught:
        parse(f"SELECT t.in ({NUMBERS}) FROM t")
    assert caught.value.sqlstate == "42883"


def test_lists_of_more_keys_than_are_looked_up_find_all() -> None:
    async def work(node: SqlNode) -> None:
        many = ", ".join(map(str, range(5, 3000)))
        assert await node.rows(f"SELECT count(*) FROM t WHERE k IN ({many})") == [(56,)]
        assert (await node.sql(f"DELETE FROM t WHERE k IN ({many})")).row_count == 56
        assert await node.rows("SELECT count(*) FROM t") == [(5,)]

    run(work)


def test_other_statements_have_the_whole_list() -> None:
    async def work(node: SqlNode) -> None:
        query = f"SELECT k FROM t WHERE k IN ({NUMBERS}) ORDER BY k"
        await node.sql(f"CREATE VIEW v AS {query}")
        await node.sql(f"CREATE TABLE copied AS {query}")
        for name in ("v", "copied"):
            assert await node.rows(f"SELECT k FROM {name} ORDER BY k") == [(5,), (7,)]
            listed = f"SELECT k FROM {name} WHERE k IN ({NUMBERS}) ORDER BY k"
            assert await node.rows(listed) == [(5,), (7,)]
        locked = f"SELECT k FROM t WHERE k IN ({NUMBERS}) ORDER BY k FOR UPDATE"
        assert await node.rows(locked) == [(5,), (7,)]
        await node.sql(f"UPDATE t SET i = CASE WHEN k IN ({NUMBERS}) THEN -1 ELSE -2 END")
        assert await node.rows("SELECT k FROM t WHERE i = -1 ORDER BY k") == [(5,), (7,)]
        session = node.session()
        prepared = await session.prepare(f"SELECT k FROM t WHERE k IN ({NUMBERS}) AND s = $1")
        result = await session.run(prepared, ["it's 7"])
        assert result.fetch_rows() == [(7,)]

    run(work)


@pytest.mark.parametrize(
    "given", ["{1,-5,7}", "{ 1, -5 ,7 }", '{"1",-5,7}', [1, -5, 7], (1, -5, 7), ["1", "-5", 7]]
)
def test_arrays_of_keys_are_read_as_they_are_written(given: object) -> None:
    assert coerce(array_of(INT8), given) == [1, -5, 7]


@pytest.mark.parametrize("given", ["{1,9223372036854775808}", [1, 1 << 63], "{1,x}", [True]])
def test_arrays_of_other_things_are_refused(given: object) -> None:
    with pytest.raises(SQLError):
        coerce(array_of(INT8), given)
