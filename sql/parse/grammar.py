"""From text to statements: which grammar reads what begins with which word."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import pairwise
from typing import cast

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ..syntax import statements
from ..syntax.schema_statements import CreateEnum
from ..syntax.statement import Statement, rows_of
from ..syntax.statements import PlannedStatement, Prepare
from ..syntax.trees import unsupported
from .constants import lists_in
from .cursor import Cursor, LexemeKind, Unmatched, syntax_error
from .dml import parse_change, parse_insert, parse_with
from .kinds import QUERY_TOKENS, kind, refuses
from .lexer import statement_tokens, tokenize
from .pieces import SMALL_PIECES
from .queries import parse_query
from .rules import Row, Rules
from .statements import rights as rights  # whose kinds rules name here
from .statements.copying import COPIES
from .statements.feeds import FEEDS
from .statements.keyspaces import KEYSPACES
from .statements.schemas import SCHEMAS
from .statements.sessions import CHORES, CURSORS, SHOWS
from .statements.tables import TABLES

STATEMENTS_MAX = 10_000
"""Statements in one text: more are a file, and files are loaded."""


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text's statements, and the greatest number of a parameter in them (zero for none)."""

    statements: tuple[Statement, ...]
    parameter_count: int
    brief: bool = False
    """Whether its trees are small, however long the text is: constants make it so."""


def parse(text: str) -> ParsedText:
    """The statements of `text`, in order; none when it holds only blanks and comments.

    >>> parse("COMMIT; ROLLBACK").statements
    (Commit(), Rollback())

    Raises SQLError 42601 (or 0A000 for what is understood and not offered) with the position.
    """
    tokens = tokenize(text)
    groups = statement_tokens(tokens)
    if len(groups) > STATEMENTS_MAX:
        raise SQLError("54000", f"more than {STATEMENTS_MAX} statements in one text")
    parsed = tuple(_statement(text, group) for group in groups)
    counts = [
        _greatest_parameter(text, group)
        for group, statement in zip(groups, parsed, strict=True)
        if "$" in text and not isinstance(statement, Prepare)  # which has parameters of its own
    ]
    return ParsedText(parsed, max(counts, default=0), brief=len(tokens) <= SMALL_PIECES)


def _greatest_parameter(text: str, tokens: list[Token]) -> int:
    numbers = [
        int(following.text)
        for token, following in pairwise(tokens)
        if token.token_type == TokenType.PARAMETER and following.text.isdecimal()
    ]
    for listed in lists_in(text, tokens).values():
        numbers += listed.parameters
    return max(numbers, default=0)


def _statement(text: str, tokens: list[Token]) -> Statement:
    first = tokens[0].token_type
    if first == TokenType.WITH:
        return parse_with(text, tokens)
    if first in QUERY_TOKENS:
        return parse_query(text, tokens)
    word = text[tokens[0].start : tokens[0].end + 1].lower()
    if word in _TREES:
        return _TREES[word](text, tokens)
    cursor = Cursor(text, tokens)
    try:
        return cast(Statement, STATEMENTS.read(cursor))
    except Unmatched:
        raise _unknown(cursor) from None


def _unknown(cursor: Cursor) -> SQLError:
    """The error for a text that no rule reads."""
    for words, (what, hint) in REFUSED.items():
        known = words.lower().split()
        if cursor.keys[: len(known)] == known and cursor.missed_at <= len(known):
            return unsupported(what, cursor.lexemes[0].start + 1, hint)
    if cursor.missed_at > 0:
        return cursor.error()
    first = cursor.lexemes[0]
    hint = "Expected a statement."
    if first.kind is LexemeKind.WORD:
        near = get_close_matches(first.text, _FIRST_WORDS, n=1)
        hint = f"Did you mean {near[0].upper()}?" if near else hint
    return syntax_error(cursor.text, first.start, first.end, hint=hint)


# EXPLAIN.

_TOLD = "EXPLAIN tells the engine, the tables and how each is read; ANALYZE adds rows and times."


@kind("planned")
def _planned(cursor: Cursor) -> Statement:
    """The statement that EXPLAIN is about. Raises SQLError 42601 for one without a plan."""
    parenthesis = cursor.key == "("
    at = cursor.current.token_index + parenthesis
    of_feed = "changefeed" in cursor.keys[cursor.index : cursor.index + 2]
    enclosed = any(token.token_type in QUERY_TOKENS for token in cursor.tokens[at : at + 1])
    if cursor.finished or of_feed or (parenthesis and not enclosed):
        cursor.fail("a statement")
    start, end = cursor.current.start, cursor.current.end
    made = _statement(cursor.text, cursor.rest())
    if not isinstance(made, PlannedStatement):
        hint = "EXPLAIN takes SELECT, INSERT, UPSERT, UPDATE or DELETE."
        raise syntax_error(cursor.text, start, end, hint=hint)
    return made


refuses(
    "untold",
    "VERBOSE/COSTS/BUFFERS/SETTINGS/WAL/MEMORY/TIMING/SUMMARY/FORMAT",
    "options of EXPLAIN beside ANALYZE",
    _TOLD,
)


# DO.

_UNLESS_THERE = re.compile(
    r"\s*BEGIN\s+(CREATE\s+TYPE\s.+?);\s*EXCEPTION\s+WHEN\s+duplicate_object\s+THEN\s+null\s*;"
    r"\s*END\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)


def _unless_there(block: str, position: int) -> Statement:
    """`DO 'BEGIN CREATE TYPE …; EXCEPTION WHEN duplicate_object THEN null; END'`: so Sequelize and
    Drizzle create an enumeration that may be there. Raises SQLError 0A000 for any other block."""
    found = _UNLESS_THERE.fullmatch(block)
    made = parse(found[1]).statements if found is not None else ()
    if len(made) == 1 and isinstance(made[0], CreateEnum):
        return replace(made[0], if_not_exists=True)
    raise unsupported("DO", position, REFUSED["DO"][1])


_BLOCKS: tuple[Row, ...] = (("^ DO block:text", _unless_there),)

_DECLARED = sorted(rows_of(Statement), key=lambda row: row[1].__module__ != statements.__name__)
"""The common ones first: an error lists a dozen."""

STATEMENTS = Rules(
    *_DECLARED, *SHOWS, *CURSORS, *FEEDS, *KEYSPACES, *TABLES,
    *SCHEMAS, *COPIES, *CHORES, *_BLOCKS,
    whole=True,
)  # fmt: skip
"""All statements that are not left to sqlglot, by the word that each begins with."""

_TREES: dict[str, Callable[[str, list[Token]], PlannedStatement]] = {
    "insert": parse_insert,
    "upsert": parse_insert,
    "update": parse_change,
    "delete": parse_change,
}

_FIRST_WORDS = {
    *("select", "with", *_TREES),
    *(word for rule in STATEMENTS.rules if rule.first is not None for word in rule.first.words[0]),
}


# Statements that are understood and not offered.

_TEMPORARY = "CREATE TEMPORARY TABLE is; drop others when they are not needed any more."
_CHANNELS = "CREATE CHANGEFEED FOR t streams the rows that change to the client."
_FEEDS = "CREATE CHANGEFEED FOR TABLE t INTO … keeps another database in step."
_FUNCTIONS = "Statements are sent one by one, or several in one text."

REFUSED = {
    "CANCEL QUERY": ("CANCEL QUERY", "SELECT pg_cancel_backend(pid) cuts its statement short."),
    "CANCEL SESSION": ("CANCEL SESSION", "SELECT pg_terminate_backend(pid) ends it."),
    "CREATE TEMP": ("temporary views and sequences", _TEMPORARY),
    "CREATE TEMPORARY": ("temporary views and sequences", _TEMPORARY),
    "CREATE UNLOGGED": ("unlogged tables", "Every table is durable: leave UNLOGGED out."),
    "CREATE OR REPLACE": ("CREATE OR REPLACE", "Drop what is there, and create it again."),
    "CREATE MATERIALIZED": (
        "materialized views",
        "CREATE TABLE … AS keeps a query's rows; a changefeed keeps a mirror current.",
    ),
    "CREATE TRIGGER": ("triggers", "A changefeed tells of every row that changes."),
    "CREATE FUNCTION": ("functions", _FUNCTIONS),
    "CREATE PROCEDURE": ("procedures", _FUNCTIONS),
    "CREATE DOMAIN": ("domains", "Give each column its type and a CHECK."),
    "CREATE EXTENSION": (
        "extensions",
        "gen_random_uuid() and the functions of docs/sql.md are there without one.",
    ),
    "CREATE RULE": ("rules", "A view reads; a changefeed tells of every row that changes."),
    "CREATE AGGREGATE": ("aggregates", _FUNCTIONS),
    "CREATE OPERATOR": ("operators", _FUNCTIONS),
    "CREATE FOREIGN": ("foreign tables", "A changefeed carries a table to another database."),
    "CREATE SERVER": ("foreign servers", _FEEDS),
    "CREATE PUBLICATION": ("publications", _FEEDS),
    "CREATE POLICY": ("policies", "GRANT gives rights on tables; a view shows some rows."),
    "CREATE TABLESPACE": ("tablespaces", "A store is one folder."),
    "ALTER DEFAULT PRIVILEGES": (
        "ALTER DEFAULT PRIVILEGES",
        "GRANT SELECT ON SCHEMA s, or ON DATABASE d, holds for every table in it, later ones too.",
    ),
    "ALTER SYSTEM": ("ALTER SYSTEM", "SET CLUSTER SETTING name = value sets the store's."),
    "MERGE": (
        "MERGE",
        "INSERT … ON CONFLICT (…) DO UPDATE writes a row or changes the one that is there; "
        "UPDATE … FROM and DELETE … USING go by another table.",
    ),
    "SET SESSION AUTHORIZATION": (
        "SET SESSION AUTHORIZATION",
        "Log in as the user, or SET ROLE to a role that you are a member of.",
    ),
    "REASSIGN OWNED": ("REASSIGN OWNED", "ALTER … OWNER TO gives a thing to another role."),
    "DROP OWNED": ("DROP OWNED", "REVOKE takes back what a role was granted."),
    "REINDEX": ("REINDEX", "Indexes do not bloat: there is nothing to do."),
    "CLUSTER": ("CLUSTER", "Rows are kept in the order of their primary key."),
    "CHECKPOINT": ("CHECKPOINT", "What is committed is durable: there is nothing to do."),
    "LISTEN": ("LISTEN", _CHANNELS),
    "NOTIFY": ("NOTIFY", _CHANNELS),
    "DO": ("DO", _FUNCTIONS),
    "CALL": ("CALL", _FUNCTIONS),
    "REFRESH": ("REFRESH", "There are no materialized views."),
    "VERIFY": ("VERIFY", "SHOW CHANGEFEED JOBS tells how far each feed is."),
}
"""By the words that each begins with: what the error calls it, and its hint."""
