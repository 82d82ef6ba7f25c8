"""Operators and functions on documents, arrays and times give what PostgreSQL gives."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

DOCUMENT = '{"a": {"b": [1, "two", {"c": null}]}, "k": "v", "x y": 1.50}'
SET_UP = (
    "CREATE TABLE t (id INT8 PRIMARY KEY, j JSONB, n INT8[], s STRING[], i INTERVAL, t TIME, "
    "at TIMESTAMPTZ)",
    f"INSERT INTO t VALUES (1, '{DOCUMENT}', '{{1,2,NULL}}', '{{x,y}}', '1 mon 2 days 03:00', "
    "'10:30', '2020-01-31 12:00')",
)

EXPRESSIONS: list[tuple[str, object]] = [
    ("j -> 'a' -> 'b' -> 1", '"two"'),
    ("j -> 'a' -> 'b' ->> 1", "two"),
    ("j -> 'a' ->> 'b'", '[1, "two", {"c": null}]'),
    ("j -> 'a' -> 'b' -> -1", '{"c": null}'),
    ("j -> 'a' -> 'b' -> 2 ->> 'c'", None),
    ("j -> 'x y'", "1.50"),
    ("j -> 'none'", None),
    ("j #> '{a,b,0}'", "1"),
    ("j #>> '{a,b,1}'", "two"),
    ("j #>> ARRAY['a','b','2']", '{"c": null}'),
    ("""j @> '{"a": {"b": ["two"]}}'""", True),
    ("""j @> '{"a": {"b": ["three"]}}'""", False),
    ("""j -> 'k' <@ '["v", 1]'""", True),
    ("j ? 'k'", True),
    ("j ? 'b'", False),
    ("j ?| ARRAY['none', 'k']", True),
    ("j ?& ARRAY['none', 'k']", False),
    ("""(j || '{"k": 1}') ->> 'k'""", "1"),
    ("j -> 'a' -> 'b' || '3'", '[1, "two", {"c": null}, 3]'),
    ("j - 'a' - 'x y'", '{"k": "v"}'),
    ("(j - 'x y') #- '{a,b}'", '{"a": {}, "k": "v"}'),
    ("jsonb_typeof(j -> 'a')", "object"),
    ("jsonb_typeof(j -> 'x y')", "number"),
    ("jsonb_array_length(j -> 'a' -> 'b')", 3),
    ("jsonb_build_object('a', 1, 'b', n)", '{"a": 1, "b": [1, 2, null]}'),
    ("jsonb_build_array(1, 'x', NULL)", '[1, "x", null]'),
    ("to_jsonb(s)", '["x", "y"]'),
    ("to_jsonb(at)", '"2020-01-31T12:00:00+00:00"'),
    ("to_jsonb(i)", '"1 mon 2 days 03:00:00"'),
    ("jsonb_set(j - 'a', '{k}', '[1]')", '{"k": [1], "x y": 1.50}'),
    ("jsonb_extract_path_text(j, 'a', 'b', '1')", "two"),
    ("""'{"b": 1, "a": 2.50}'::jsonb""", '{"a": 2.50, "b": 1}'),
    ("(j -> 'a')::text", '{"b": [1, "two", {"c": null}]}'),
    ("(j ->> 'x y')::float8", 1.5),
    ("n::text", "{1,2,NULL}"),
    ("ARRAY['a b', NULL, '', 'c\"']::text", '{"a b",NULL,"","c\\""}'),
    ("(n)[-1:2]", [1, 2]),
    ("1 = ANY (NULL::INT8[])", None),
    ("NULL::INT8[] || NULL::INT8[]", None),
    ("i || '!'", "1 mon 2 days 03:00:00!"),
    ("extract(epoch FROM i)::int8", 2775600),
    ("n[1]", 1),
    ("n[5]", None),
    ("n[id - 2]", None),
    ("n[2:3]", [2, None]),
    ("2 = ANY (n)", True),
    ("'x' = ANY ('{x,z}')", True),
    ("1 = ANY ('{3,4}'::int8[])", False),
    ("id <> ALL (n)", False),
    ("n || 4", [1, 2, None, 4]),
    ("0 || n", [0, 1, 2, None]),
    ("n || '{7,8}'", [1, 2, None, 7, 8]),
    ("n || ARRAY[9]", [1, 2, None, 9]),
    ("array_length(n, 1)", 3),
    ("array_length('{}'::int8[], 1)", None),
    ("array_length(n, 2)", None),
    ("cardinality(n)", 3),
    ("array_append(s, 'z')", ["x", "y", "z"]),
    ("array_remove(n, 2)", [1, None]),
    ("array_position(s, 'y')", 2),
    ("array_to_string(n, ',')", "1,2"),
    ("n @> '{2}'", True),
    ("s <@ ARRAY['x', 'y', 'z']", True),
    ("s && ARRAY['q']", False),
    ("ARRAY[1, 2] = '{1,2}'", True),
    ("i::text", "1 mon 2 days 03:00:00"),
    ("(i + INTERVAL '1 day 2 hours')::text", "1 mon 3 days 05:00:00"),
    ("(i * 2)::text", "2 mons 4 days 06:00:00"),
    ("i > '1 mon'", True),
    ("INTERVAL '1 mon' = '30 days'", True),
    ("at + INTERVAL '1 month'", datetime(2020, 2, 29, 12, tzinfo=UTC)),
    ("at - '36 hours'::interval", datetime(2020, 1, 30, 0, tzinfo=UTC)),
    ("(at - '2020-01-30 00:00')::text", "1 day 12:00:00"),
    ("t + INTERVAL '14 hours'", time(0, 30)),
    ("(t - '09:00'::time)::text", "01:30:00"),
    ("t > '10:00'", True),
    ("extract(day FROM i)", 2),
    ("date '2020-01-31' + 1", date(2020, 2, 1)),
]


QUERIES: list[tuple[str, list[tuple[object, ...]]]] = [
    ("SELECT jsonb_array_elements(j -> 'a' -> 'b') FROM t", [("1",), ('"two"',), ('{"c": null}',)]),
    (
        "SELECT e.value FROM t, jsonb_array_elements_text(t.j -> 'a' -> 'b') AS e ORDER BY 1",
        [("1",), ("two",), ('{"c": null}',)],
    ),
    ("SELECT x FROM jsonb_array_elements('[3, 4]') AS e(x) ORDER BY x::text", [("3",), ("4",)]),
    ("SELECT unnest(n) FROM t", [(1,), (2,), (None,)]),
    ("SELECT x FROM t, unnest(t.s) AS u(x) ORDER BY x", [("x",), ("y",)]),
    ("SELECT jsonb_agg(v ORDER BY v DESC) FROM (VALUES (1), (2)) AS w(v)", [("[2, 1]",)]),
    ("SELECT jsonb_agg(id) FILTER (WHERE id > 5) FROM t", [(None,)]),
    ("SELECT array_agg(id ORDER BY id) FROM t", [([1],)]),
    ("SELECT ARRAY(SELECT id FROM t)", [([1],)]),
    ("SELECT id FROM t WHERE j @> '{\"k\": \"v\"}' AND n[2] = 2 AND i < '2 mons'", [(1,)]),
    ("SELECT count(*) FROM t WHERE j ->> 'k' = 'v' GROUP BY j", [(1,)]),
]


@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_query_is_as_in_postgres(
    answers: dict[str, object], query: str, rows: list[tuple[object, ...]]
) -> None:
    assert answers[query] == rows


BAD = [
    ("SELECT '{a}'::jsonb", "22P02"),
    ("SELECT 'x'::interval", "22007"),
    ("SELECT '25:00'::time", "22008"),
    ("SELECT '{1,x}'::int8[]", "22P02"),
    ("SELECT '70000'::int2[]", "22P02"),
    ("SELECT (s[1])::jsonb FROM t", "22P02"),
    ("SELECT id FROM t WHERE n = '{x}'", "22P02"),
    ("SELECT id FROM t WHERE i = 'x'", "22007"),
    ("SELECT j - 'a' - 'k' - 'x y' || '1' FROM t WHERE j @> '{'", "22P02"),
    ("""SELECT '1'::jsonb - 'a'""", "22023"),
    ("SELECT jsonb_array_length(j) FROM t", "22023"),
    ("SELECT ARRAY[1, 'x']", "22P02"),
]


@pytest.mark.parametrize(("query", "sqlstate"), BAD)
def test_bad_value_is_told_as_in_postgres(
    answers: dict[str, object], query: str, sqlstate: str
) -> None:
    error = answers[query]
    assert isinstance(error, SQLError)
    assert error.sqlstate == sqlstate


@pytest.fixture(scope="module")
def answers() -> dict[str, object]:
    """What each expression is, an error being an answer too."""
    found: dict[str, object] = {}

    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in SET_UP:
                await node.sql(text)
            for expression, _ in EXPRESSIONS:
                found[expression] = await _answer(node, f"SELECT {expression} FROM t")
            for query, _ in (*QUERIES, *BAD):
                found[query] = await _answer(node, query)

    sim = Simulation(3)
    sim.run(whole())
    return found


async def _answer(node: SqlNode, query: str) -> object:
    try:
        return await node.rows(query)
    except SQLError as error:
        return error


@pytest.mark.parametrize(("expression", "value"), EXPRESSIONS)
def test_expression_is_as_in_postgres(
    answers: dict[str, object], expression: str, value: object
) -> None:
    assert answers[expression] == [(value,)]
