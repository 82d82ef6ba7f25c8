"""Statements on documents: what DuckDB would lose, take for equal, or take for a text."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

SET_UP = (
    "CREATE TABLE t (id INT8 PRIMARY KEY, doc JSONB, other JSONB, note TEXT)",
    """INSERT INTO t VALUES
    (1, '{"price": 4.50, "n": 9007199254740993, "list": [1.0, "x"]}', '1', 'a'),
    (2, '{"price": 4.5, "n": 1, "list": []}', '1.0', 'b'), (3, '1.00', '[]', 'c'),
    (4, NULL, 'null', 'd')""",
)
QUERIES: list[tuple[str, list[tuple[object, ...]]]] = [
    ("SELECT doc -> 'price' FROM t WHERE id < 3 ORDER BY id", [("4.50",), ("4.5",)]),
    ("SELECT doc ->> 'n', doc -> 'list' -> 0 FROM t WHERE id = 1", [("9007199254740993", "1.0")]),
    ("SELECT doc #> '{list,1}', doc #>> '{price}' FROM t WHERE id = 1", [('"x"', "4.50")]),
    ("SELECT doc - 'n' - 'list' FROM t WHERE id = 1", [('{"price": 4.50}',)]),
    ("""SELECT d -> 'a"b', d -> '*' FROM (SELECT '{"a\\"b": 6, "c": 1}'::JSONB AS d) s""",
     [("6", None)]),
    ("SELECT jsonb_typeof(doc -> 'list' -> -1) FROM t WHERE id = 1", [("string",)]),
    ("SELECT id FROM t WHERE other = '1.00' ORDER BY id", [(1,), (2,)]),
    ("SELECT id FROM t WHERE doc IN ('1', '2')", [(3,)]),
    ("SELECT count(*) FROM (SELECT DISTINCT other FROM t) d", [(3,)]),
    ("SELECT count(*) FROM t GROUP BY other ORDER BY 1", [(1,), (1,), (2,)]),
    ("SELECT a.id FROM t a JOIN t b ON a.doc = b.other ORDER BY 1", [(3,), (3,)]),
    ("SELECT id FROM t ORDER BY other DESC, id", [(1,), (2,), (4,), (3,)]),
    ("SELECT count(*) FROM (SELECT doc FROM t UNION ALL SELECT other FROM t) u", [(8,)]),
    ("SELECT e FROM t, jsonb_array_elements(doc -> 'list') e WHERE id = 1 ORDER BY e",
     [('"x"',), ("1.0",)]),
    ("SELECT jsonb_build_object('p', 4.50, 'd', doc -> 'price') FROM t WHERE id = 2",
     [('{"d": 4.5, "p": 4.50}',)]),
    # SQLAlchemy's steps into a document
    ("SELECT doc['list'][0], doc['list'][-1] ->> 0, doc['none'] FROM t WHERE id = 1",
     [("1.0", "x", None)]),
    ("SELECT id FROM t WHERE CAST((doc['list'] ->> 1) AS TEXT) = 'x'", [(1,)]),
    # Kysely's jsonArrayFrom and jsonObjectFrom, and Drizzle's relations.
    ("""SELECT note, (SELECT coalesce(json_agg(agg), '[]') FROM (SELECT "id", b.note FROM t AS b
     WHERE b.id <> t.id AND b.id < 3 ORDER BY id) AS agg) AS a FROM t WHERE id < 3 ORDER BY id""",
     [("a", '[{"id": 2, "note": "b"}]'), ("b", '[{"id": 1, "note": "a"}]')]),
    ("SELECT (SELECT to_json(obj) FROM (SELECT t.note AS n, 1 AS one) AS obj) FROM t WHERE id = 1",
     [('{"n": "a", "one": 1}',)]),
    ('SELECT json_agg(row_to_json("t".*)) FROM (SELECT id FROM t WHERE id < 3 ORDER BY id) AS "t"',
     [('[{"id": 1}, {"id": 2}]',)]),
    ("SELECT to_jsonb(u) FROM t AS u LEFT JOIN t AS w ON w.id = 0 WHERE u.id = 4",
     [('{"id": 4, "doc": null, "note": "d", "other": null}',)]),
    ("SELECT to_jsonb(note) FROM t AS note WHERE id = 4", [('"d"',)]),
]  # fmt: skip
REFUSED = [
    ("SELECT upper(doc) FROM t", "42883"),
    ("SELECT max(doc) FROM t", "42883"),
    ("SELECT doc LIKE 'x' FROM t", "42883"),
    ("SELECT doc = 1 FROM t", "42883"),
    ("SELECT note -> 'a' FROM t", "42883"),
    ("SELECT doc::DATE FROM t", "42846"),
    ("SELECT jsonb_array_elements(doc) FROM t", "22023"),
    ("SELECT (doc -> 'n')::INT8 FROM t", "42846"),
    ("SELECT key FROM t, jsonb_each(doc)", "0A000"),
    ("SELECT doc - 1 FROM t", "42883"),
    ("SELECT jsonb_object_keys(doc) FROM t", "0A000"),
    ("SELECT json_extract(doc, '$.a') FROM t", "42883"),
    ("SELECT doc @? '$.a' FROM t", "0A000"),
    ("SELECT jsonb_insert(doc, '{a}', '1') FROM t", "0A000"),
    ("SELECT json_object('{a,1}')", "0A000"),
    ("SELECT r.a FROM t, jsonb_to_record(doc) AS r (a INT8)", "0A000"),
    ("SELECT doc @@ '$.a == 1' FROM t", "0A000"),
    ("SELECT jsonb_path_query(doc, '$.a') FROM t", "0A000"),
    ("SELECT item FROM t, jsonb_path_query(doc, '$.a') AS item", "0A000"),
    ("SELECT doc FROM t EXCEPT ALL SELECT other FROM t", "0A000"),
    ("SELECT count(DISTINCT other) FROM t", "0A000"),
    ("SELECT id FROM t WHERE (id, doc) = (1, other)", "0A000"),
    ("SELECT nullif(doc, other) FROM t", "0A000"),
    ("SELECT to_jsonb(w) FROM t LEFT JOIN t AS w ON w.id = 0", "0A000"),  # NULL in PostgreSQL
    ("SELECT rank() OVER (PARTITION BY doc ORDER BY id) FROM t", "0A000"),
]


@pytest.fixture(scope="module")
def answers() -> dict[str, object]:
    """What each statement gives, or the SQLSTATE of its error."""
    found: dict[str, object] = {}

    async def ask(node: SqlNode, statement: str) -> object:
        try:
            rows = await node.rows(statement)
        except SQLError as error:
            return error.sqlstate
        return [tuple(str(v) if "NUMERIC" in statement else v for v in row) for row in rows]

    async def run(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            for statement in SET_UP:
                await node.sql(statement)
            for statement, _ in (*QUERIES, *REFUSED):
                found[statement] = await ask(node, statement)

    sim = Simulation(1)
    sim.run(run(sim))
    return found


@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_query_is_as_in_postgres(
    answers: dict[str, object], query: str, rows: list[tuple[object, ...]]
) -> None:
    assert answers[query] == rows


@pytest.mark.parametrize(("query", "sqlstate"), REFUSED)
def test_what_is_no_operation_on_documents_is_refused(
    answers: dict[str, object], query: str, sqlstate: str
) -> None:
    assert answers[query] == sqlstate


def test_rows_are_checked_and_changed_by_the_order_of_documents() -> None:
    async def run(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql(
                "CREATE TABLE held (id INT8 PRIMARY KEY, doc JSONB CHECK (doc <> '0'), "
                "twice JSONB AS (doc || '[0.50]') STORED)"
            )
            assert (await node.error("INSERT INTO held VALUES (1, '0.0')")).sqlstate == "23514"
            await node.sql("INSERT INTO held (id, doc) VALUES (1, '0.10'), (2, '{}')")
            await node.sql("UPDATE held SET doc = doc || '{\"a\": 1.0}' WHERE doc = '{}'")
            await node.sql(
                "UPDATE held SET doc = jsonb_set(doc, '{b}', '[null, 2.50]') WHERE id = 2"
            )
            await node.sql("UPDATE held SET doc = doc - $1 WHERE id = 2", "a")
            await node.sql("DELETE FROM held WHERE doc IN ('0.1')")
            assert await node.rows("SELECT doc, twice FROM held") == [
                ('{"b": [null, 2.50]}', '[{"b": [null, 2.50]}, 0.50]')
            ]

    sim = Simulation(1)
    sim.run(run(sim))


def test_moments_are_written_in_the_zone_of_the_session() -> None:
    async def run(sim: Simulation) -> None:
        async with sql_node(sim) as node:
            await node.sql("SET TIME ZONE 'Europe/Berlin'")
            noon = "'2024-07-01 12:00:00.50+00'::TIMESTAMPTZ"
            rows = await node.rows(f"SELECT to_jsonb({noon}), jsonb_build_array({noon}, NULL)")
            written = '"2024-07-01T14:00:00.5+02:00"'
            assert rows == [(written, f"[{written}, null]")]

    sim = Simulation(1)
    sim.run(run(sim))
