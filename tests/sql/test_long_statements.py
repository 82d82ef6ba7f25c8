"""Long statements: planned in time that grows as they do, in slices, within limits."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from types import FrameType

import pytest
from sqlglot.optimizer.scope import Scope

from benchmarks.statement_shapes import SHAPES, TABLE
from tailrace.catalog.descriptors.descriptor import TableDescriptor
from tailrace.catalog.values.errors import SQLError
from tailrace.kvlayer.process.fibre import in_slices
from tailrace.sql.analyze.binder import Relations, tables_of
from tailrace.sql.analyze.types.parameter_types import PARAMETERS_MAX, type_parameters
from tailrace.sql.analyze.types.types import Types
from tailrace.sql.parse import parse
from tailrace.sql.parse.pieces import PIECES_MAX, pieces
from tailrace.sql.plan.needs import needs_of
from tailrace.sql.plan.planner import plan_statement
from tailrace.sql.plan.plans import SelectPlan
from tailrace.sql.syntax.statements import Query
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node


@pytest.fixture(scope="module")
def shape() -> TableDescriptor:
    """The table that the shapes read."""

    async def work(sim: Simulation) -> TableDescriptor:
        async with sql_node(sim) as node:
            await node.sql(TABLE)
            reader = node.store.begin(read_only=True)
            (table,) = await node.services.catalog.list_tables(reader, "defaultdb")
            return table

    sim = Simulation(1)
    return sim.run(work(sim))


def plan(text: str, table: TableDescriptor) -> SelectPlan:
    (statement,) = parse(text).statements
    assert isinstance(statement, Query), statement
    relations: Relations = {("shape",): table}
    tables = tables_of(statement)
    made = plan_statement(statement, relations)
    assert isinstance(made, SelectPlan), made
    needs_of(statement, tables, relations)
    assert made.analytic.sql
    return made


def calls_of(work: Callable[[], object]) -> int:
    """How many calls of functions, ours and others', some work makes. No clock has a say in it."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def main() -> None:
        def counted() -> None:
            sys.setprofile(note)
            try:
                work()
            finally:
                sys.setprofile(None)

        await in_slices(counted)

    asyncio.run(main())
    return count


def run(work: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def main(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await work(node)

    sim = Simulation(1)
    sim.run(main(sim))


SIZES = {"not": 100, "parentheses": 127, "casts": 200, "calls": 100, "nested_case": 100}


def nested_cases(size: int) -> str:
    return f"SELECT {'CASE WHEN true THEN ' * size}1{' ELSE 0 END' * size} AS c"


@pytest.mark.parametrize("name", [*SHAPES, "nested_case"])
def test_planning_is_linear(name: str, shape: TableDescriptor) -> None:
    size, text = SIZES.get(name, 200), SHAPES.get(name, nested_cases)
    plan(text(20), shape)
    few = calls_of(lambda: plan(text(size), shape))
    many = calls_of(lambda: plan(text(2 * size), shape))
    assert many <= 2.3 * few, (few, many)


@pytest.mark.parametrize("condition", ["1 IN ({})", "n IN ({})", "n = ANY (ARRAY[{}])"])
def test_parameters_are_typed_in_linear_time(condition: str, shape: TableDescriptor) -> None:
    def typed(count: int) -> None:
        listed = ", ".join(f"${number + 1}" for number in range(count))
        (statement,) = parse(f"SELECT 1 FROM shape WHERE {condition.format(listed)}").statements
        assert isinstance(statement, Query), statement
        made = type_parameters(statement, {("shape",): shape}, (), count)
        assert len(made.parameter_types) == count

    typed(20)
    few, many = calls_of(lambda: typed(1000)), calls_of(lambda: typed(2000))
    assert many <= 2.3 * few, (few, many)


def test_a_statement_has_as_many_parameters_as_the_protocol_counts() -> None:
    async def work(node: SqlNode) -> None:
        session = node.session()
        await session.prepare(f"SELECT ${PARAMETERS_MAX}::INT8")
        with pytest.raises(SQLError) as caught:
            await session.prepare(f"SELECT ${PARAMETERS_MAX + 1}::INT8")
        assert caught.value.sqlstate == "54000"

    run(work)


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        (f"SELECT {'(' * 100_000}1", "54001"),
        (f"SELECT {'ARRAY[' * 100_000}1", "54001"),
        (f"SELECT {'NOT ' * 100_000}true", "54001"),
        (f"SELECT {'CASE WHEN true THEN ' * 100_000}1", "54001"),
        (f"SELECT {'abs(' * 100_000}1", "54001"),
        (f"SELECT {'~ ' * 100_000}1", "54001"),
        (f"SELECT {' + '.join('1' * 10_000)}", "54001"),
        (f"SELECT {' || '.join(['note'] * 10_000)}", "54001"),
        (f"SELECT 1{'::INT8' * 10_000}", "54001"),
        (f"SELECT {', '.join('n + 1' for _ in range(100_000))}", "54011"),
        (f"SELECT f({', '.join('n + 1' for _ in range(100_000))})", "54000"),
    ],
    ids=lambda value: value[:14],
)
def test_a_limit_refuses_before_anything_is_parsed(text: str, sqlstate: str) -> None:
    def refused() -> None:
        with pytest.raises(SQLError) as caught:
            parse(text)
        assert caught.value.sqlstate == sqlstate

    assert calls_of(refused) < 30 * PIECES_MAX


def test_a_long_statement_gives_way() -> None:
    async def work(node: SqlNode) -> None:
        # Parsing waits for nothing: in one step it would be over when it has begun.
        task = asyncio.ensure_future(node.services.plans.reading(SHAPES["columns"](1000)))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done()
        await task

    run(work)


def test_a_cancel_ends_planning() -> None:
    async def work(node: SqlNode) -> None:
        await node.sql(TABLE)
        session = node.session()
        task = asyncio.ensure_future(session.execute(SHAPES["columns"](1000)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.execute("ROLLBACK")
        assert await node.rows("SELECT 1") == [(1,)]

    run(work)


def test_chains_answer_as_they_are_written() -> None:
    async def work(node: SqlNode) -> None:
        rows = await node.rows(" UNION ALL ".join(f"SELECT {k} AS c" for k in range(40)))
        assert rows == [(k,) for k in range(40)]
        conditions = " OR ".join(f"k = {k} AND k > 0" for k in range(40))
        text = f"SELECT k FROM generate_series(0, 99) AS g(k) WHERE {conditions} ORDER BY k"
        assert await node.rows(text) == [(k,) for k in range(1, 40)]

    run(work)


def test_a_union_is_typed_as_a_whole() -> None:
    async def work(node: SqlNode) -> None:
        literals = " UNION ALL ".join(["SELECT '1'"] * 10)
        for text in (f"{literals} UNION ALL SELECT 1", f"SELECT 1 AS c UNION ALL {literals}"):
            assert await node.rows(text) == [(1,)] * 11

    run(work)


def test_a_script_may_be_as_long_as_its_text_may() -> None:
    """The words of one statement count, not those of its neighbours."""
    statement = "INSERT INTO t SELECT a + b FROM u WHERE a < b AND b < c;\n"
    count = PIECES_MAX // 10
    assert len(pieces(statement * count).cuts) > 10


def test_nothing_of_a_plan_waits_for_the_collector(shape: TableDescriptor) -> None:
    """The collector takes all that a statement leaves in one step of the loop."""

    def alive() -> int:
        return sum(isinstance(found, Scope | Types) for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = alive()
        asyncio.run(in_slices(lambda: plan(SHAPES["union_all"](20), shape)))
        assert alive() == before
    finally:
        gc.enable()
