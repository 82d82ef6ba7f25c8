"""Regular expressions in statements: constant or not, on either engine."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from sqlglot import exp

import tailrace
from tailrace import SQLError
from tailrace.sql.lower import texts
from tailrace.sql.parse.expressions import parse_expression
from tests.sql.patterns.random_patterns import random_pattern, random_text

CALLS = (
    "s ~ {p}", "s !~* {p}", "regexp_replace(s, {p}, '<\\&\\1>', 'g')",
    "regexp_replace(s, {p}, '<\\1>')",
)  # fmt: skip


@pytest.fixture(scope="module")
def db() -> Iterator[tailrace.Database]:
    with tailrace.open(":memory:") as opened:
        opened.sql("CREATE TABLE t (k INT8 PRIMARY KEY, s STRING, p STRING)")
        yield opened


def value(db: tailrace.Database, expression: str) -> object:
    ((found,),) = db.sql(f"SELECT {expression}").fetchall()
    return found


def test_a_constant_pattern_and_a_column_have_one_meaning(db: tailrace.Database) -> None:
    draw = random.Random(5)
    db.sql("DELETE FROM t")
    for key in range(30):
        db.sql("INSERT INTO t VALUES ($1, $2, $3)", (key, random_text(draw), ""))
    drawn = (random_pattern(draw) for _ in range(400))
    for pattern in [each for each in drawn if "|" in each][:15]:
        db.sql("UPDATE t SET p = $1", (pattern,))
        constant = ", ".join(call.format(p=f"'{pattern}'") for call in CALLS)
        of_column = ", ".join(call.format(p="p") for call in CALLS)
        found = [
            db.sql(f"SELECT {items} FROM t ORDER BY k").fetchall()
            for items in (constant, of_column)
        ]
        assert found[0] == found[1], pattern


def test_duckdb_answers_where_it_has_postgres_answer() -> None:
    subject = exp.column("s")
    for pattern, name in (("'b..'", "regexp_matches"), ("p", "pattern_found")):
        tree = parse_expression(pattern)
        assert name in texts.like(subject, tree, "", tree=tree).sql("duckdb").lower()


def test_each_row_may_have_a_pattern_of_its_own(db: tailrace.Database) -> None:
    draw = random.Random(6)
    pairs = [(random_text(draw), random_pattern(draw)) for _ in range(40)]
    db.sql("DELETE FROM t")
    for key, pair in enumerate(pairs):
        db.sql("INSERT INTO t VALUES ($1, $2, $3)", (key, *pair))
    found = db.sql("SELECT s ~ p FROM t ORDER BY k").fetchall()
    for key, (_, pattern) in enumerate(pairs):
        query = f"SELECT s ~ '{pattern}' FROM t WHERE k = {key}"
        assert db.sql(query).fetchall() == [found[key]], pattern


def test_a_collation_of_bytes_is_refused_where_letters_are_asked_for(db: tailrace.Database) -> None:
    for expression in ("'é' ~ '\\w' COLLATE \"C\"", "lower('É' COLLATE \"C\")"):
        with pytest.raises(SQLError, match="COLLATE") as raised:
            value(db, expression)
        assert raised.value.sqlstate == "0A000"
    assert value(db, "'a' COLLATE \"C\" < 'b'") is True


def test_empty_matches_behind_others_count(db: tailrace.Database) -> None:
    assert value(db, "regexp_replace('abc', 'b*', '-', 'g')") == "-a--c-"


@pytest.mark.parametrize(
    ("replacement", "made"),
    [(r"[\1\&]", "[bb]"), (r"\\", "\\"), (r"\0", r"\0"), ("\\", "\\"), (r"\q", r"\q"), (r"\2", "")],
)
def test_replacements_are_postgres_own(db: tailrace.Database, replacement: str, made: str) -> None:
    for pattern in ("(b)", "(b|bb)"):
        assert value(db, f"regexp_replace('b', '{pattern}', '{replacement}')") == made


@pytest.mark.parametrize(
    ("expression", "sqlstate", "message"),
    [
        ("'a' ~ '('", "2201B", "parentheses () not balanced"),
        ("regexp_replace('a', 'a', 'b', 'z')", "22023", 'invalid regular expression option: "z"'),
        ("regexp_replace(1, 'a', 'b')", "42883", "(bigint, unknown, unknown) does not exist"),
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


@pytest.mark.parametrize("pattern", ["'(a)\\1'", "'(a)' || '\\1'"])
def test_what_is_not_supported_has_a_hint(db: tailrace.Database, pattern: str) -> None:
    """Whether it is said when the statement is planned or when it runs."""
    with pytest.raises(SQLError, match="beyond RE2") as raised:
        value(db, f"regexp_replace('aa', {pattern}, 'b')")
    assert raised.value.sqlstate == "0A000"
    assert raised.value.hint is not None
