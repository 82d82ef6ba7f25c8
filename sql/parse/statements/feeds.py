"""Changefeeds, their clauses, and their queries: `SELECT items FROM table [WHERE condition]`.

    SELECT id, cdc_prev.status, event_op() FROM orders WHERE status <> 'new'

A query of a changefeed says of each change by itself what becomes of it, so whatever would need
other rows, other tables or other moments is refused here, by its name. Calls of the functions that
tell of an event are read as columns of the names in `EVENT_FUNCTIONS`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ...builtins.known_functions import WINDOWS
from ...syntax.changefeed_statements import DatabaseFeed, FeedClause, FeedSelect, LetterChoice
from ...syntax.keyspace_statements import KeyspaceFeed
from ...syntax.statement import ObjectName, Option, rows_of
from ...syntax.statements import CreateChangefeed, ExplainChangefeed
from ...syntax.trees import position_of, table_name, walk
from ..cursor import Cursor
from ..kinds import define_rules, itself, kind, refuses
from ..lexer import like, tokenize
from ..queries import parse_query
from ..rules import Row, Rules
from . import keyspaces as keyspaces  # whose kinds rules name here

EVENT_FUNCTIONS = frozenset({"event_op", "event_schema_timestamp", "changefeed_creation_timestamp"})
"""Functions without arguments that only a changefeed's query can call."""

_CLAUSES = {
    "with_": "WITH",
    "laterals": "LATERAL",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "distinct": "DISTINCT",
}
_TABLE_FUNCTIONS = (exp.ExplodingGenerateSeries, exp.GenerateSeries, exp.Unnest, exp.Explode)
_VOLATILE_NODES: dict[type[exp.Expr], str] = {exp.Rand: "random", exp.Uuid: "gen_random_uuid"}
_VOLATILE = frozenset(
    """
    gen_random_uuid random setseed unique_rowid clock_timestamp timeofday txid_current pg_sleep
    nextval currval setval set_config
    """.split()  # noqa: SIM905 (a list of words is read as such)
)


@kind("feed_select")
def _feed_select(cursor: Cursor) -> FeedSelect:
    """The query that stands from here to the end of the statement. Raises SQLError 0A000 for what
    the query of a changefeed cannot hold."""
    if cursor.key not in ("select", "with"):
        cursor.fail("SELECT … FROM a table")
    return _select(cursor.text, cursor.rest())


def parse_feed_select(text: str) -> FeedSelect:
    """A changefeed's query by its text, as it was stored."""
    return _select(text, tokenize(text))


def _select(text: str, tokens: list[Token]) -> FeedSelect:
    try:
        query = parse_query(text, _with_event_columns(tokens))
    except SQLError as error:
        if error.position is not None and text.upper().startswith("WITH", error.position - 1):
            error.hint = "Options stand before the query: CREATE CHANGEFEED WITH … AS SELECT …"
        raise
    if query.as_of is not None:
        _refuse("AS OF SYSTEM TIME is", None, "The option cursor says where a changefeed begins.")
    if query.lock is not None:
        _refuse("FOR UPDATE and FOR SHARE are", None)
    tree = query.tree
    if not isinstance(tree, exp.Select):
        _refuse("set operations are", tree)
    for argument, name in _CLAUSES.items():
        found = tree.args.get(argument)
        if found:
            _refuse(f"{name} is", found if isinstance(found, exp.Expr) else tree)
    table = _only_table(tree)
    where = tree.args.get("where")
    for item in (*tree.expressions, *([] if where is None else [where.this])):
        _check(item)
    written = text[tokens[0].start : tokens[-1].end + 1]
    return FeedSelect(text=written, tree=tree, table=table)


def _only_table(tree: exp.Select) -> ObjectName:
    clause = tree.args.get("from_") or tree.args.get("from")
    if clause is None:
        _refuse("a query without FROM is", None, "SELECT … FROM a table.")
    source = clause.this
    if tree.args.get("joins") or source.args.get("joins"):
        _refuse(
            "more than one table is", tree, "Create a changefeed for each, and join behind them."
        )
    if isinstance(source, exp.Subquery):
        _refuse("subqueries are", source)
    if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
        _refuse("set-returning functions are", source)
    if source.args.get("sample"):
        _refuse("TABLESAMPLE is", source)
    alias = source.args.get("alias")
    if alias is not None and alias.columns:
        _refuse("names of columns behind the table are", source, "Write AS behind an item.")
    return table_name(source)


def _check(tree: exp.Expr) -> None:
    for node in walk(tree):
        if isinstance(node, exp.Query):
            _refuse("subqueries are", node, "Each change is looked at by itself.")
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, exp.Window) or name in WINDOWS:
            _refuse("window functions are", node, "Each change is looked at by itself.")
        if isinstance(node, exp.AggFunc) or name in ("count", "array_agg"):
            _refuse("aggregate functions are", node, "Each change is looked at by itself.")
        if isinstance(node, _TABLE_FUNCTIONS):
            _refuse("set-returning functions are", node)
        called = _VOLATILE_NODES.get(type(node), name)
        if called in _VOLATILE:
            _refuse(
                f"volatile function {called} is",
                node,
                "The same change has to give the same result.",
            )
        if isinstance(node, exp.Parameter | exp.Placeholder):
            _refuse("parameters are", node, "Write the value.")


def _with_event_columns(tokens: list[Token]) -> list[Token]:
    """The tokens with a column, `"event_op()"`, for each call of an event function."""
    made: list[Token] = []
    for token in tokens:
        made.append(token)
        call = [each.token_type for each in made[-2:]] == _PARENTHESES and len(made) > 2
        if call and made[-3].text.lower() in EVENT_FUNCTIONS:
            called = like(made[-3], TokenType.IDENTIFIER, f"{made[-3].text.lower()}()")
            called.end = token.end
            made[-3:] = [called]
    return made


_PARENTHESES = [TokenType.L_PAREN, TokenType.R_PAREN]


def _refuse(what: str, node: exp.Expr | None, hint: str | None = None) -> NoReturn:
    raise SQLError(
        "0A000",
        f"{what} not supported in CDC queries",
        hint=hint,
        position=None if node is None else position_of(node),
    )


refuses(
    "family",
    "FAMILY",
    "changefeeds of column families",
    "A table's rows are stored whole: a changefeed of it tells of all columns.",
)
refuses(
    "scheduled_query",
    "INTO/WITH",
    "schedules of CDC queries",
    "FOR CHANGEFEED TABLE … names the tables.",
)
define_rules("feed_table", Rules(("[TABLE] name:table [_:family]", itself)))
define_rules("whole_database", Rules(*rows_of(DatabaseFeed)))
define_rules("letters", Rules(*rows_of(LetterChoice)))
_clause = Rules(*rows_of(FeedClause))


@kind("feed_clauses")
def _clauses(cursor: Cursor) -> tuple[object, ...]:
    """One behind the other, to the end of the statement"""
    found = [_clause.read(cursor)]
    while not cursor.finished:
        found.append(_clause.read(cursor))
    return tuple(found)


def _changefeed(
    tables: tuple[ObjectName, ...], keyspace: KeyspaceFeed | None, **fields: object
) -> CreateChangefeed:
    named = tables if keyspace is None else (keyspace.name,)
    return CreateChangefeed(tables=named, keyspace=keyspace, **fields)  # type: ignore[arg-type]


def _of_query(sink: str | None, options: tuple[Option, ...], query: FeedSelect) -> CreateChangefeed:
    return CreateChangefeed(tables=(query.table,), sink=sink, options=options, query=query)


_FEED = (
    ("CHANGEFEED { INTO sink:sink | options:with } AS query:feed_select", _of_query),
    (
        "CHANGEFEED { INTO sink:sink | options:with } FOR ( RELAXED LOG relaxed_log:relaxed_log "
        "| KEYSPACE keyspace:keyspace_feed | DATABASE whole_database:whole_database "
        "| tables:feed_table,… ) { INTO sink:sink | options:with }",
        _changefeed,
    ),
)
define_rules("feed", Rules(*_FEED))


def _explained(changefeed: CreateChangefeed) -> ExplainChangefeed:
    """The grammar of CREATE CHANGEFEED, with one option more: `sample = n`."""
    samples = [option for option in changefeed.options if option.name == "sample"]
    options = tuple(option for option in changefeed.options if option.name != "sample")
    if not samples:
        return ExplainChangefeed(changefeed=changefeed, sample=None)
    value = samples[-1].value
    if len(samples) > 1 or value is None or not value.isdecimal() or not 0 < int(value) <= 1_000:
        raise SQLError(
            "22023",
            "sample takes how many messages to show: from 1 to 1000",
            position=samples[-1].position,
        )
    return ExplainChangefeed(changefeed=replace(changefeed, options=options), sample=int(value))


FEEDS: tuple[Row, ...] = (
    *((f"CREATE/EXPERIMENTAL {words}", make) for words, make in _FEED),
    ("EXPLAIN [CREATE] changefeed:feed", _explained),
)
