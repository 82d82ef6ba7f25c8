"""Regular expressions in statements: as constants and as parameters."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import tailrace
from tailrace import SQLError
from tailrace.sql.builtins.evaluator_functions import IN_PYTHON
from tailrace.sql.lower.transpile import transpile
from tailrace.sql.parse import parse
from tailrace.sql.syntax.statements import Query
from tests.sql.patterns.random_patterns import random_pattern, random_text

CALLS = ("s ~ {p}", "s !~ {p}", "s ~* {p}", "s !~* {p}")


@pytest.fixture(scope="module")
def db() -> Iterator[tailrace.Database]:
    with tailrace.open(":memory:") as opened:
        opened.sql("CREATE TABLE t (k INT8 PRIMARY KEY, s STRING, p STRING)")
        yield opened


def value(db: tailrace.Database, expression: str) -> object:
    ((found,),) = db.sql(f"SELECT {expression}").fetchall()
    return found


def test_a_constant_pattern_and_a_parameter_have_one_meaning(db: tailrace.Database) -> None:
    draw = random.Random(5)
    db.sql("DELETE FROM t")
    for key in range(30):
        db.sql("INSERT INTO t VALUES ($1, $2, $3)", (key, random_text(draw), ""))
    drawn = (random_pattern(draw) for _ in range(400))
    for pattern in [each for each in drawn if "|" in each][:15]:
        constant, parameter = (
            f"SELECT {', '.join(call.format(p=p) for call in CALLS)} FROM t ORDER BY k"
            for p in (f"'{pattern}'", "$1")
        )
        assert db.sql(constant).fetchall() == db.sql(parameter, (pattern,)).fetchall(), pattern


def test_a_pattern_may_be_grouped_by(db: tailrace.Database) -> None:
    db.sql("DELETE FROM t")
    db.sql("INSERT INTO t VALUES (1, 'ab')")
    query = "SELECT s ~ $1, count(*) FROM t GROUP BY s ~ $1"
    assert db.sql(query, ("b",)).fetchall() == [(True, 1)]


def test_what_is_unknown_matches_nothing(db: tailrace.Database) -> None:
    assert value(db, "'a' ~ NULL") is None
    assert db.sql("SELECT 'a' ~ $1", (None,)).fetchall() == [(None,)]


def test_a_pattern_of_each_row_is_refused(db: tailrace.Database) -> None:
    with pytest.raises(SQLError, match="neither a constant nor a parameter") as raised:
        db.sql("SELECT s ~ p FROM t")
    assert raised.value.sqlstate == "0A000"
    assert raised.value.hint is not None


def test_no_pattern_is_computed_in_python(db: tailrace.Database) -> None:
    (query,) = parse("SELECT 'a' ~ 'b..', 'a' ~* $1").statements
    assert isinstance(query, Query)
    assert IN_PYTHON.search(transpile(query.tree, {}).sql) is None


def test_a_collation_of_bytes_is_refused_where_letters_are_asked_for(db: tailrace.Database) -> None:
    for expression in ("'é' ~ '\\w' COLLATE \"C\"", "lower('É' COLLATE \"C\")"):
        with pytest.raises(SQLError, match="COLLATE") as raised:
            value(db, expression)
        assert raised.value.sqlstate == "0A000"
    assert value(db, "'a' COLLATE \"C\" < 'b'") is True


@pytest.mark.parametrize(
    ("expression", "sqlstate", "message"),
    [
        ("'a' ~ '('", "2201B", "invalid regular expression: missing )"),
        ("'a' ~ 'a)'", "2201B", "invalid regular expression: unexpected )"),
        ("'a' ~ '*a'", "2201B", "no argument for repetition operator"),
        ("'a' ~ 'a**'", "2201B", "bad repetition operator"),
        ("'a' ~ 'a{2,1}'", "2201B", "invalid repetition size"),
        ("'a' ~ '(a{200}){200}'", "2201B", "invalid repetition size"),
        ("'a' ~ '(\\w{90}){9}'", "2201B", "pattern too large"),
        ("regexp_replace('a', 'a', 'b')", "0A000", "not supported: regexp_replace()"),
        ("regexp_match('a', 'a')", "0A000", "not supported: regexp_match()"),
        ("substring('a' from 'a')", "0A000", "not supported: substring() by a pattern"),
        ("regexp_count('a', 'a')", "0A000", "not supported: regexp_count()"),
        ("'a' !~ ANY (ARRAY['a', 'b'])", "0A000", "not supported: patterns by ANY or ALL"),
        ("'a' LIKE ALL (ARRAY['a', 'b'])", "0A000", "not supported: patterns by ANY or ALL"),
        ("'a' SIMILAR TO 'a'", "0A000", "not supported: SIMILAR TO"),
        ("'a' NOT SIMILAR TO 'a' ESCAPE '#'", "0A000", "not supported: SIMILAR TO"),
    ],
)
def test_errors_are_postgres_own(
    db: tailrace.Database, expression: str, sqlstate: str, message: str
) -> None:
    with pytest.raises(SQLError) as raised:
        value(db, expression)
    assert raised.value.sqlstate == sqlstate
    assert message in raised.value.message


@pytest.mark.parametrize("pattern", ["'(a)\\1'", "('(a)' || '\\1')"])
def test_what_is_not_supported_has_a_hint(db: tailrace.Database, pattern: str) -> None:
    """Whether it is said when the statement is planned or when it runs."""
    with pytest.raises(SQLError, match="beyond RE2") as raised:
        value(db, f"'aa' ~ {pattern}")
    assert raised.value.sqlstate == "0A000"
    assert raised.value.hint is not None
