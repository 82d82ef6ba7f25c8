"""Statements prepared before their parameters are known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tailrace.catalog.values.column_types import STRING
from tailrace.catalog.values.errors import SQLError
from tailrace.sql import SessionState
from tailrace.sql.session import prepared_names
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

CREATE = """
CREATE TABLE t (
    id INT8 PRIMARY KEY, note STRING, price DECIMAL(10,2), at TIMESTAMPTZ, n INT8, f FLOAT8, d JSONB
)
"""


def on_table(work: Callable[[SqlNode], Awaitable[None]]) -> None:
    async def run() -> None:
        async with sql_node(sim) as node:
            await node.sql(CREATE)
            await work(node)

    sim = Simulation(1)
    sim.run(run())


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("SELECT * FROM t WHERE id = $1 LIMIT $2", "INT8 INT8"),
        ("SELECT * FROM t WHERE note LIKE $1 AND price BETWEEN $2 AND 3", "STRING DECIMAL(10,2)"),
        ("SELECT $1::date, $2, $3 + 1", "DATE STRING INT8"),
        ("SELECT x.id FROM t AS x WHERE $1 IN (x.at) OR x.f < $2", "TIMESTAMPTZ FLOAT8"),
        ("SELECT count(*) FROM t GROUP BY note HAVING count(*) > $1", "INT8"),
        ("SELECT coalesce(note, $1), CASE WHEN $2 THEN n ELSE $3 END FROM t", "STRING BOOL INT8"),
        ("SELECT id FROM t WHERE id IN (SELECT n FROM t WHERE note = $1) AND f = $2",
         "STRING FLOAT8"),
        ("SELECT m FROM (SELECT id + n AS m FROM t) AS s WHERE m = $1", "INT8"),
        ("WITH w AS (SELECT at FROM t) SELECT * FROM w WHERE at < $1", "TIMESTAMPTZ"),
        ("INSERT INTO t VALUES ($1, $2, $3, $4)", "INT8 STRING DECIMAL(10,2) TIMESTAMPTZ"),
        ("INSERT INTO t (f, id) VALUES ($2, $1 + 1)", "INT8 FLOAT8"),
        ("INSERT INTO t (id, note) SELECT $1, $2", "INT8 STRING"),
        ("UPDATE t SET n = n + $1, at = $2 WHERE id = $3", "INT8 TIMESTAMPTZ INT8"),
        ("UPDATE t SET note = $1 WHERE f > $2", "STRING FLOAT8"),
        ("DELETE FROM t WHERE id = $1 OR note = $2", "INT8 STRING"),
        ("UPDATE t SET d = JSONB_SET(d, $1, $2) WHERE id = $3", "STRING[] JSONB INT8"),  # GORM
        ("SELECT id FROM t WHERE d::jsonb -> $1 ? $2", "STRING STRING"),  # GORM
        ("SELECT e FROM jsonb_array_elements($1) e", "JSONB"),
        ("SELECT * FROM t WHERE (id, note) IN (($1, $2), ($3, $4))", "INT8 STRING INT8 STRING"),
        ("DELETE FROM t WHERE (id, at) > ($1, $2)", "INT8 TIMESTAMPTZ"),
        # What functions and operators take, as they are chosen with operands of no known type.
        ("SELECT left(note, $1), split_part(note, $2, $3) FROM t", "INT8 STRING INT8"),
        ("SELECT substring(note, $1, $2), round(price, $3) FROM t", "INT8 INT8 INT8"),
        ("SELECT at + $1, interval '1 day' * $2, at - $3 FROM t", "INTERVAL FLOAT8 TIMESTAMPTZ"),
        ("SELECT n * $1 + $2, $3 || note, d || $4, d - $5 FROM t",
         "INT8 INT8 STRING JSONB STRING"),
        ("SELECT abs($1), sqrt($2), max($3), ntile($4) OVER (ORDER BY id) FROM t",
         "FLOAT8 FLOAT8 STRING INT8"),
        # tokio-postgres, of each type that it does not know
        ("SELECT enumlabel FROM pg_enum WHERE enumtypid = $1", "oid"),
        ("SELECT typname FROM pg_type t JOIN pg_namespace n ON t.typnamespace = n.oid "
         "WHERE t.oid = $1", "oid"),
    ],
)  # fmt: skip
def test_parameters_take_their_types_from_what_they_meet(text: str, types: str) -> None:
    async def work(node: SqlNode) -> None:
        prepared = await node.first.prepare(text)
        assert " ".join(type.sql_name for type in prepared.parameter_types) == types

    on_table(work)


def test_a_query_is_described_without_being_run() -> None:
    async def work(node: SqlNode) -> None:
        for text, columns in [
            ("SELECT note, id FROM t WHERE id = $1", "note STRING, id INT8"),
            ("SELECT count(*), sum(price) AS s FROM t WHERE n > $1",
             "count INT8, s DECIMAL(38,2)"),
            ("SELECT $1, $2::date, $3 / 2.5", "?column? STRING, date DATE, ?column? FLOAT8"),
            ("INSERT INTO t (id) VALUES ($1) RETURNING id, note", "id INT8, note STRING"),
            ("DELETE FROM t", ""),
            ("SHOW TABLES",
             "schema_name STRING, table_name STRING, type STRING, changefeed_optimized BOOL"),
        ]:  # fmt: skip
            prepared = await node.first.prepare(text)
            found = await node.first.describe(prepared)
            shown = [f"{c.name} {c.type.sql_name}" for c in found]
            for wanted, told in zip(columns.split(", ") if columns else [], shown, strict=True):
                assert told.startswith(wanted), (text, shown)
        assert await node.rows("SELECT * FROM t") == []

    on_table(work)


def test_values_of_every_plan_run_as_they_were_typed() -> None:
    async def work(node: SqlNode) -> None:
        session = node.first
        insert = await session.prepare("INSERT INTO t (id, note, n) VALUES ($1, $2, $3)")
        for number in range(3):
            await session.run(insert, [number, f"note {number}", number * 10])
        point = await session.prepare("SELECT note FROM t WHERE id = $1")
        assert (await session.run(point, [1])).fetch_rows() == [("note 1",)]
        update = await session.prepare("UPDATE t SET n = n + $1 WHERE id = $2 RETURNING n")
        assert (await session.run(update, [5, 2])).fetch_rows() == [(25,)]
        total = await session.prepare("SELECT sum(n) + $1 FROM t WHERE n > $2")
        assert (await session.run(total, [1, 0])).fetch_rows() == [(36,)]
        echo = await session.prepare("SELECT $1, $2::int8")
        assert (await session.run(echo, ["5", 6])).fetch_rows() == [("5", 6)]

    on_table(work)


def test_arguments_of_functions_are_given_as_they_are_taken() -> None:
    async def work(node: SqlNode) -> None:
        await node.sql("INSERT INTO t (id, note, n) VALUES (1, 'ab,cd', 5)")
        cases: list[tuple[str, list[object], tuple[object, ...]]] = [
            ("SELECT left(note, $1), split_part(note, $2, $3) FROM t", [1, ",", 2], ("a", "cd")),
            ("SELECT repeat(note, $1), lpad(note, $2, $3) FROM t", [2, 6, "*"],
             ("ab,cdab,cd", "*ab,cd")),
            ("UPDATE t SET note = left(note, $1) WHERE length(note) > $2 RETURNING note", [2, 1],
             ("ab",)),
        ]  # fmt: skip
        for text, values, found in cases:
            prepared = await node.first.prepare(text)
            assert (await node.first.run(prepared, values)).fetch_rows() == [found]

    on_table(work)


def test_declared_types_are_casts() -> None:
    async def work(node: SqlNode) -> None:
        session = node.first
        int8 = (await session.prepare("SELECT id FROM t WHERE id = $1")).parameter_types[0]
        echo = await session.prepare("SELECT $1", [int8])
        assert await session.describe(echo) == (await session.run(echo, [7])).columns
        assert (await session.run(echo, [7])).fetch_rows() == [(7,)]
        with pytest.raises(SQLError) as caught:
            await session.prepare("INSERT INTO t (id) VALUES ($1)", [STRING])
        assert caught.value.sqlstate == "42804"

    on_table(work)


def test_a_described_result_never_changes_its_type() -> None:
    async def work(node: SqlNode) -> None:
        session = node.first
        await node.sql("CREATE TABLE s (id INT8 PRIMARY KEY, v STRING)")
        texts = ["SELECT * FROM s WHERE id = $1", "SELECT v FROM s ORDER BY v, id + $1",
                 "INSERT INTO s VALUES ($1, '') RETURNING *"]  # fmt: skip
        prepared = [await session.prepare(text) for text in texts]
        for statement in prepared:
            await session.describe(statement)
        await node.sql("DROP TABLE s")
        await node.sql("CREATE TABLE s (id INT8 PRIMARY KEY, v INT8)")
        for statement in prepared:
            with pytest.raises(SQLError) as caught:
                await session.run(statement, [1])
            assert caught.value.sqlstate in ("0A000", "22P02"), statement.text
        assert await node.rows("SELECT * FROM s") == []
        again = await session.prepare(texts[0])
        assert [column.type.sql_name for column in await session.describe(again)] == ["INT8"] * 2

    on_table(work)


def test_a_batch_is_one_transaction() -> None:
    async def work(node: SqlNode) -> None:
        session = node.first
        one, two = await session.parse(
            "INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (1)"
        )
        await session.run(one, more=True)
        assert session.state is SessionState.IDLE
        with pytest.raises(SQLError):
            await session.run(two)
        await session.end_batch()
        assert await node.rows("SELECT id FROM t") == []
        await session.run(one, more=True)
        await session.end_batch()
        assert await node.rows("SELECT id FROM t") == [(1,)]

    on_table(work)


def test_begin_in_a_batch_takes_over_what_ran_before_it() -> None:
    async def work(node: SqlNode) -> None:
        session = node.first
        insert, begin = await session.parse("INSERT INTO t (id) VALUES (1); BEGIN")
        await session.run(insert, more=True)
        await session.run(begin, more=True)
        await session.end_batch()
        assert session.state is SessionState.IN_TRANSACTION
        await node.sql("ROLLBACK")
        assert await node.rows("SELECT id FROM t") == []

    on_table(work)


def test_prepare_execute_and_deallocate_by_sql() -> None:
    async def work(node: SqlNode) -> None:
        await node.sql("PREPARE put (INT8, TEXT) AS INSERT INTO t (id, note) VALUES ($1, $2)")
        await node.sql("EXECUTE put (1, 'it''s')")
        await node.sql("PREPARE find AS SELECT note FROM t WHERE id = $1")
        assert await node.rows("EXECUTE find (1)") == [("it's",)]
        await node.sql("EXECUTE put ('2', NULL)")
        assert await node.rows("EXECUTE find ('2')") == [(None,)]
        assert (await node.error("EXECUTE find (2 - 1)")).sqlstate == "42601"
        assert (await node.error("EXECUTE find ('a')")).sqlstate == "22P02"
        assert (await node.error("PREPARE find AS SELECT 1")).sqlstate == "42P05"
        assert (await node.error("EXECUTE find")).sqlstate == "42601"
        assert (await node.error("PREPARE bad AS SELECT wrong FROM t LIMIT 1")).position == 23
        await node.sql("DEALLOCATE find")
        assert (await node.error("EXECUTE find (1)")).sqlstate == "26000"
        await node.sql("DEALLOCATE ALL")
        assert (await node.error("EXECUTE put (1, '')")).sqlstate == "26000"

    on_table(work)


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("BOOL", "true"), ("DECIMAL", "-1.5"), ("FLOAT8", "0.25"), ("DATE", "2026-01-02"),
        ("TIMESTAMPTZ", "2026-01-02 03:04:05+00"), ("INTERVAL", "1 day"), ("BYTEA", "\\x0102"),
        ("UUID", "00000000-0000-4000-8000-000000000001"), ("INT8[]", "{1,2}"),
        ("JSONB", '{"a": [1]}'),
    ],
)  # fmt: skip
def test_execute_reads_texts_as_the_parameters_types(type: str, text: str) -> None:
    async def work(node: SqlNode) -> None:
        await node.sql(f"PREPARE p ({type}) AS SELECT $1 = '{text}'::{type}")
        assert await node.rows(f"EXECUTE p ('{text}')") == [(True,)]

    on_table(work)


def test_execute_computes_as_its_parameters_were_described() -> None:
    async def work(node: SqlNode) -> None:
        await node.sql("CREATE TABLE s (f4 FLOAT4, t TEXT); INSERT INTO s VALUES (0.5, 'a')")
        await node.sql("PREPARE q AS SELECT $1 + f4, coalesce($2, f4), t || $3 FROM s")
        assert await node.rows("EXECUTE q ('0.25', NULL, 5)") == [(0.75, 0.5, "a5")]
        await node.sql("PREPARE w AS UPDATE s SET t = $1, f4 = $2")
        await node.sql("EXECUTE w (5, 1)")
        assert await node.rows("SELECT * FROM s") == [(1.0, "5")]

    on_table(work)


def test_execute_runs_queries_and_writes_alone() -> None:
    async def work(node: SqlNode) -> None:
        await node.sql("PREPARE shown AS SHOW timezone; PREPARE itself AS EXECUTE itself")
        for name in ("shown", "itself"):
            assert (await node.error(f"EXECUTE {name}")).sqlstate == "0A000"

    on_table(work)


def test_prepared_statements_have_a_length_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_names, "TEXT_MAX", 200)

    async def work(node: SqlNode) -> None:
        long = f"SELECT '{'x' * 55}'"
        await node.sql(f"PREPARE a AS {long}")
        await node.sql(f"PREPARE b AS {long}")
        assert (await node.error(f"PREPARE c AS {long}")).sqlstate == "53400"
        await node.sql("DEALLOCATE a")
        await node.sql(f"PREPARE c AS {long}")
        await node.sql("DEALLOCATE ALL")
        await node.sql(f"PREPARE a AS {long}")

    on_table(work)
