"""Operators, functions and literals mean what PostgreSQL means by their types, or say an error."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tests.harness.simulation import Simulation
from tests.harness.sql_node import sql_node

SET_UP = (
    "CREATE TABLE t (id INT8 PRIMARY KEY, n DECIMAL, s STRING, i INTERVAL, a INT8[], b BYTES, "
    "f FLOAT8, at TIMESTAMP, day DATE, yes BOOL)",
    "INSERT INTO t VALUES (1, 1.5, 'x', '1 day', '{1,2}', '\\x01', 0.5, '2024-01-02 03:00', "
    "'2024-01-02', true)",
)

REFUSED = [
    ("i::INTERVAL YEAR", "0A000", "not supported: fields of an interval behind its text"),
    ("'1 day 2 days'::INTERVAL", "22007", "invalid input syntax for type interval"),
    ("12_000", "42601", "trailing junk after numeric literal at or near"),
    ("0x1F", "42601", "trailing junk after numeric literal at or near"),
    ("i + 1", "42883", "operator does not exist: interval + bigint"),
    ("i = 1", "42883", "operator does not exist: interval = bigint"),
    ("s = 1", "42883", "operator does not exist: text = bigint"),
    ("a = ARRAY['x']", "42883", "operator does not exist: bigint[] = text[]"),
    ("a = 1", "42883", "operator does not exist: bigint[] = bigint"),
    ("id || id", "42883", "operator does not exist: bigint || bigint"),
    ("id LIKE '1'", "42883", "operator does not exist: bigint ~~ unknown"),
    ("upper(id)", "42883", "function upper(bigint) does not exist"),
    ("max(yes)", "42883", "function max(boolean) does not exist"),
    ("sum(s)", "42883", "function sum(text) does not exist"),
    ("'1' + '2'", "42725", "operator is not unique: unknown + unknown"),
    ("day + '1'", "42725", "operator is not unique: date + unknown"),
    ("1 = '1.0'", "22P02", 'invalid input syntax for type int8: "1.0"'),
    ("abs('x')", "22P02", 'invalid input syntax for type float8: "x"'),
    ("coalesce(id, s)", "42804", "COALESCE types bigint and text cannot be matched"),
    ("ARRAY[1, yes]", "42804", "ARRAY types bigint and boolean cannot be matched"),
    ("CASE WHEN id THEN 1 END", "42804", "argument of CASE/WHEN must be type boolean"),
    ("1 = ANY (1)", "42809", "op ANY/ALL (array) requires array on right side"),
    ("(id)[1]", "42804", "cannot subscript type bigint"),
    ("-s", "42883", "function - does not take these arguments"),
    ("yes::DATE", "42846", "cannot cast type boolean to date"),
    ("(yes, id) = (id, id)", "42883", "operator does not exist: boolean = bigint"),
    ("id IS TRUE", "42804", "argument of IS TRUE must be type boolean, not type bigint"),
    ("unnest(id)", "42883", "function unnest(bigint) does not exist"),
    ("'1 moon'::STRING::INTERVAL", "22007", 'invalid input syntax for type interval: "1 moon"'),
    ("'1.5.2'::STRING::DECIMAL", "22P02", 'invalid input syntax for type numeric: "1.5.2"'),
    ("ARRAY[a]", "0A000", "not supported: arrays of several dimensions"),
    ("ARRAY[]", "42P18", "cannot determine type of empty array"),
    ("array_agg(a)", "0A000", "not supported: arrays of several dimensions"),
    ("a[1][1]", "0A000", "not supported: arrays of several dimensions"),
]

ANSWERED = [
    ("ARRAY(SELECT sum(id) FROM t)", [1]),
    ("abs('-5')", 5.0),
    ("pg_typeof(round('2.5'))", "double precision"),
    ("pg_typeof(ceil(id))", "double precision"),
    ("b || '\\x02'", b"\x01\x02"),
    ("coalesce(n, '0')::STRING", "1.500000000"),
    ("at - '2024-01-01'::STRING::TIMESTAMP = '1 day 3 hours'", True),
    ("extract(epoch FROM i + INTERVAL '1 hour')::INT8", 90000),
    ("(i + i)::STRING", "2 days"),
    ("id || 'x' || yes", "1xtrue"),
    ("coalesce(a, '{9}')", [1, 2]),
    ("a[id:]", [1, 2]),
    ("'\\x0102'::STRING::BYTES", b"\x01\x02"),
    ("'{3,NULL}'::STRING::INT8[]", [3, None]),
    ("(2.675::FLOAT8)::DECIMAL(10,2)::STRING", "2.68"),
    ("(0.1234567890123)::DECIMAL::STRING", "0.1234567890123"),
    ("i::VARCHAR(3)", "1 d"),
    ("array_agg(DISTINCT n)::STRING", "{1.500000000}"),
    ("nullif(n, f)", 1.5),
    ("concat(a, '-', i)", "{1,2}-1 day"),
    ("ARRAY[1, NULL] @> ARRAY[NULL]::INT8[]", False),
    ("a[:id]", [1]),
    ("1 = ALL (a)", False),
    ("1 = ALL (NULL::INT8[])", None),
    ("array_position(ARRAY['p', 'q', 'p'], 'p', 2)", 3),
    ("array_to_string(ARRAY[true, NULL], ',', '*')", "t,*"),
    ("(i / 2)::STRING", "12:00:00"),
    ("(INTERVAL '1 year' / 7)::STRING", "1 mon 21 days 10:17:08.5344"),
    ("(1.5 * INTERVAL '1 mon')::STRING", "1 mon 15 days"),
    ("sum(i)::STRING", "1 day"),
    ("avg(i + i)::STRING", "2 days"),
]


@pytest.fixture(scope="module")
def answers() -> dict[str, object]:
    """What each expression is, an error being an answer too."""
    found: dict[str, object] = {}

    async def whole() -> None:
        async with sql_node(sim) as node:
            for text in SET_UP:
                await node.sql(text)
            for expression in (*(each[0] for each in REFUSED), *(each[0] for each in ANSWERED)):
                try:
                    found[expression] = (await node.rows(f"SELECT {expression} FROM t"))[0][0]
                except SQLError as error:
                    found[expression] = error

    sim = Simulation(31)
    sim.run(whole())
    return found


@pytest.mark.parametrize(("expression", "sqlstate", "message"), REFUSED)
def test_what_has_no_meaning_is_refused(
    answers: dict[str, object], expression: str, sqlstate: str, message: str
) -> None:
    error = answers[expression]
    assert isinstance(error, SQLError), error
    assert error.sqlstate == sqlstate
    assert error.message.startswith(message)


@pytest.mark.parametrize(("expression", "expected"), ANSWERED)
def test_literals_are_of_the_type_that_is_wanted(
    answers: dict[str, object], expression: str, expected: object
) -> None:
    assert answers[expression] == expected
