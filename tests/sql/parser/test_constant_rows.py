"""Rows of constants that are read out of the text, beside the parser's."""

from __future__ import annotations

import pytest
from sqlglot import exp

from tailrace.catalog.values.errors import SQLError
from tailrace.sql.parse import parse
from tailrace.sql.parse.constants import ROWS
from tailrace.sql.syntax.statements import Insert

ROW_TEXTS = (
    "(1, 'a''b', null)",
    "( -2.50 ,'x (1,2), (3', TRUE )",
    "\n(3,\t'$1 \\ ü', False)",
    "(007,'',NULL)",
)
MANY = ", ".join(ROW_TEXTS * 20)


def values_of(text: str, place: int = 0) -> exp.Values:
    statement = parse(text).statements[place]
    assert isinstance(statement, Insert)
    assert isinstance(statement.source, exp.Values)
    return statement.source


def rows_of(values: exp.Values) -> list[list[str]]:
    parsed = [[item.sql() for item in row.expressions] for row in values.expressions]
    further = values.meta[ROWS].rows() if ROWS in values.meta else ()
    return parsed + [[item.sql() for item in row] for row in further]


def test_rows_are_what_the_parser_makes() -> None:
    alone = [rows_of(values_of(f"INSERT INTO t VALUES {row}"))[0] for row in ROW_TEXTS]
    many = values_of(f"INSERT INTO t VALUES {MANY}")
    assert len(many.meta[ROWS]) == 79
    assert rows_of(many) == alone * 20


def test_constants_know_where_they_stand() -> None:
    text = f"INSERT INTO t VALUES {MANY}"
    items = [item for row in values_of(text).meta[ROWS].rows() for item in row]
    literals = [literal for item in items for literal in item.find_all(exp.Literal)]
    assert len(literals) > 79
    assert all(text.startswith((one.name[:1], "'"), one.meta["start"]) for one in literals)


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT INTO t VALUES {MANY}; SELECT 1",
        f"/* ' */ upsert into t (a, b, c) values{MANY}",
        f"INSERT INTO t VALUES {MANY}\nON CONFLICT DO NOTHING",
        f"INSERT INTO t VALUES {MANY} RETURNING a",
    ],
)
def test_rows_end_where_the_statement_goes_on(text: str) -> None:
    assert len(values_of(text).meta[ROWS]) == 79


def test_each_statement_has_its_rows() -> None:
    text = f"INSERT INTO t VALUES {MANY}; INSERT INTO t VALUES {MANY}, (1, '2', 3)"
    assert [len(values_of(text, place).meta[ROWS]) for place in (0, 1)] == [79, 80]


@pytest.mark.parametrize("row", ["(1, now(), 2)", "(1, E'a', 2)", "(1, DEFAULT, 2)", "(1, 1e3, 2)"])
def test_a_row_of_more_has_all_rows_parsed(row: str) -> None:
    assert len(values_of(f"INSERT INTO t VALUES {MANY}, {row}").expressions) == 81


@pytest.mark.parametrize("behind", [", (1, 2)", ", (1, 2, 3, 4)"])
def test_a_ragged_row_is_named(behind: str) -> None:
    text = f"INSERT INTO t VALUES {MANY}"
    with pytest.raises(SQLError, match="must all be the same length") as raised:
        parse(text + behind)
    assert raised.value.position == len(text) + 4


@pytest.mark.parametrize("behind", [",", " foo bar", ", (1, 2", " UNION SELECT 1"])
def test_what_follows_is_judged(behind: str) -> None:
    with pytest.raises(SQLError) as raised:
        parse(f"INSERT INTO t VALUES {MANY}{behind}")
    assert raised.value.sqlstate == "42601"
