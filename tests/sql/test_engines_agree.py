"""What Python evaluates by key, DuckDB would have answered too."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailrace.catalog.values.column_types import Datum
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.clock import timestamp_at
from tailrace.sql.analyze.scalars import Bindings
from tailrace.sql.execute.query.reading import run_select
from tailrace.sql.lower.transpile import AnalyticSelect
from tailrace.sql.parse import parse
from tailrace.sql.plan.planner import plan_statement
from tailrace.sql.plan.plans import SelectPlan
from tailrace.sql.syntax.statements import Query
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = timestamp_at(unix_us=int(NOW.timestamp()) * 1_000_000)

VALUES: dict[str, list[Datum]] = {
    "INT8": [-(2**63), -1, 0, 1, 2, 3, 2**63 - 1],
    "STRING": ["", "a", "a'b", "aa", "b", "é", "🐘"],
    "DECIMAL(6,2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("0.01"), Decimal("9999.99")],
    "FLOAT8": [float("-inf"), -1.5, 0.0, 1.5, float("inf"), float("nan")],
    "BYTES": [b"", b"\x00", b"a", b"\xff"],
    "DATE": [date(1969, 12, 31), date(2020, 1, 1), date(2020, 1, 2)],
    "TIMESTAMP": [datetime(1900, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 1)],
    "TIMESTAMPTZ": [datetime(1900, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)],
    "UUID": [UUID(int=0), UUID(int=1), UUID(int=1 << 127)],
    "BOOL": [False, True],
}

types = st.sampled_from(sorted(VALUES))


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, list[str], list[list[Datum]], str, list[object]]:
    """A table, its rows, a query and its parameters."""
    key = [draw(types) for _ in range(draw(st.integers(1, 3)))]
    kinds = [*key, draw(types)]
    names = [f"c{number}" for number in range(len(kinds))]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    table = f"CREATE TABLE t ({columns}, PRIMARY KEY ({', '.join(names[: len(key)])}))"
    row = st.tuples(
        *(st.sampled_from(VALUES[kind]) for kind in key),
        st.sampled_from([*VALUES[kinds[-1]], None]),
    )
    rows = draw(st.lists(row, max_size=12, unique_by=lambda row: repr(row[: len(key)])))
    parameters: list[object] = []
    conjuncts = [
        draw(conditions(name, kind, parameters))
        for name, kind in draw(
            st.lists(st.sampled_from(list(zip(names, kinds, strict=True))), min_size=1, max_size=4)
        )
    ]
    order = draw(st.sampled_from(["", " DESC"]))
    listed = ", ".join(f"{name}{order}" for name in names[: len(key)])
    items = draw(st.sampled_from(["*", "1 AS one", f"7, {names[-1]}, 007 AS seven"]))
    query = f"SELECT {items} FROM t WHERE {' AND '.join(conjuncts)} ORDER BY {listed}"
    if draw(st.booleans()):
        query += f" LIMIT {draw(st.integers(0, 5))} OFFSET {draw(st.integers(0, 2))}"
    return table, names, [list(values) for values in rows], query, parameters


@st.composite
def conditions(draw: st.DrawFn, name: str, kind: str, parameters: list[object]) -> str:
    def constant() -> str:
        value: object = draw(st.sampled_from([*VALUES[kind], None]))
        if kind == "DECIMAL(6,2)" and draw(st.booleans()):
            value = draw(st.sampled_from([Decimal("0.001"), Decimal("-99999.999"), 1]))
        parameters.append(value)
        return f"${len(parameters)}"

    forms = ["=", "=", "<", "<=", ">", ">=", "<>", "IN", "BETWEEN", "NULL"]
    if kind in ("INT8", "STRING", "UUID", "DATE"):
        forms += ["ANY", "ANY"]
    form = draw(st.sampled_from(forms))
    match form:
        case "IN":
            items = [constant() for _ in range(draw(st.integers(1, 3)))]
            return f"{name} IN ({', '.join(items)})"
        case "ANY":
            elements = st.lists(st.sampled_from([*VALUES[kind], None]), max_size=4)
            parameters.append(draw(st.one_of(elements, elements, st.none())))
            return f"{name} = ANY (${len(parameters)}::{kind}[])"
        case "BETWEEN":
            return f"{name} BETWEEN {constant()} AND {constant()}"
        case "NULL":
            return f"{name} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    return f"{name} {form} {constant()}"


async def ask(node: SqlNode, query: str, parameters: list[object]) -> None:
    (statement,) = parse(query).statements
    assert isinstance(statement, Query)
    table = await node.services.catalog.list_tables(node.store.begin(read_only=True), "defaultdb")
    plan = plan_statement(statement, {("t",): table[0]})
    assert isinstance(plan, SelectPlan)
    bindings = Bindings(parameters, AT, analytics=node.services.analytics)
    whole = SelectPlan(relations=plan.relations, native=None, make_analytic=lambda: plan.analytic)
    transaction = node.store.begin(read_only=True)
    ours = await run_select(plan, transaction, bindings)
    theirs = await run_select(whole, transaction, bindings)
    assert repr(ours.fetch_rows()) == repr(theirs.fetch_rows()), query
    assert ours.columns == theirs.columns
    unnarrowed = replace(whole, make_analytic=lambda: without_access(plan))
    everything = await run_select(unnarrowed, transaction, bindings)
    assert repr(everything.fetch_rows()) == repr(theirs.fetch_rows()), query


def without_access(plan: SelectPlan) -> AnalyticSelect:
    scans = tuple(replace(scan, access=None) for scan in plan.analytic.scans)
    return replace(plan.analytic, scans=scans)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(questions())
def test_native_and_duckdb_answers_are_equal(
    question: tuple[str, list[str], list[list[Datum]], str, list[object]],
) -> None:
    table, names, rows, query, parameters = question
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(table)
            insert = ", ".join(f"${number + 1}" for number in range(len(names)))
            for row in rows:
                # -0.0 and 0.0, and rows that differ only by them, are one key.
                await node.sql(f"UPSERT INTO t VALUES ({insert})", *row)
            await ask(node, query, parameters)

    sim.run(main())


async def error_of(node: SqlNode, query: str) -> str | None:
    try:
        await node.sql(query)
    except SQLError as error:
        return error.sqlstate
    return None


def test_elements_of_an_array_are_read_by_key() -> None:
    sim = Simulation(seed=1)

    async def main() -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE t (k INT8, l INT4, v STRING, PRIMARY KEY (k, l), INDEX (v))"
            )
            await node.sql(
                "INSERT INTO t VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, 'b'), (4, 1, NULL)"
            )
            by_key = "SELECT k FROM t WHERE k = ANY ($1) AND l = 1 ORDER BY k"
            by_index = "SELECT k FROM t WHERE v = ANY ($1) ORDER BY v, k"
            for query, engine in (
                (by_key, "native: point reads"),
                (by_index, "native: index scan"),
            ):
                literal = query.replace("$1", "'{1}'")
                assert (await node.rows(f"EXPLAIN {literal}"))[0] == ("engine", engine)
            for elements, found in (
                ([4, 1, None, 9, 1, 3], [(1,), (4,)]),
                ([], []),
                (None, []),
                (list(range(2, 5000)), [(2,), (4,)]),  # DuckDB's
            ):
                assert await node.rows(by_key, elements) == found
            assert await node.rows(by_index, ["b", "", None]) == [(2,), (3,)]
            assert await error_of(node, by_key.replace("$1", "'{x}'")) == "22P02"
            assert await error_of(node, by_key.replace("$1", "'{a}'::STRING[]")) == "42883"

    sim.run(main())
