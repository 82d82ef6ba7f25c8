"""Judges a reader's statement by DuckDB's parse of it, and refuses what may do more than read.

    SELECT …, DESCRIBE …, SHOW …, SUMMARIZE …      one statement that the parser calls a SELECT
    EXPLAIN [ANALYZE] …                            the same behind it

DuckDB lets a statement read and write the file of the database that it runs in, and the write-ahead
log beside it, also where external access is off: a read-only transaction stops neither
`EXPLAIN ANALYZE COPY (…) TO 'mirror.duckdb'` nor `read_blob('mirror.duckdb.wal')`. So every node of
the parsed statement is looked at. Nodes that query and kinds of FROM items are those listed here,
functions in FROM are those listed here, and a name in FROM is a table or view of the file or a WITH
query: any other name would be taken for a file's.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise

import duckdb

from .....catalog.values.errors import SQLError

TEXT_BYTES_MAX = 64 * 1024
"""A longer statement is refused: its parse tree is fifty times as long."""

_QUERIES = frozenset(
    ("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE", "VALUES_NODE")
)
_FROM_ITEMS = frozenset(
    (
        "BASE_TABLE",
        "SUBQUERY",
        "JOIN",
        "TABLE_FUNCTION",
        "EXPRESSION_LIST",
        "EMPTY",
        "EMPTY_FROM",
        "SHOW_REF",
        "PIVOT",
    )
)
_TABLE_FUNCTIONS = frozenset(
    (
        "range",
        "generate_series",
        "unnest",
        "repeat",
        "repeat_row",
        "json_each",
        "json_tree",
        "duckdb_columns",
        "duckdb_constraints",
        "duckdb_indexes",
        "duckdb_schemas",
        "duckdb_tables",
        "duckdb_types",
        "duckdb_views",
        "pragma_table_info",
        "table_info",
        "pragma_version",
        "version",
    )
)
"""Functions in FROM that make rows of their arguments or describe the file's tables."""

_FUNCTIONS_REFUSED = frozenset(
    ["write_log", "nextval", "setval", "json_serialize_plan", "create_sort_key"]
)
"""Functions outside FROM work on values; these write, or bind a statement given as text."""


def judge(cursor: duckdb.DuckDBPyConnection, sql: str) -> Judged:
    """The statement, judged. Raises SQLError: 42601, 25006 for one that may write, 42501 for one
    that reaches out of the file, 42P01, 54000 for one too long; and duckdb.Error."""
    if len(sql.encode(errors="replace")) > TEXT_BYTES_MAX:
        raise SQLError("54000", f"a query of a mirror has at most {TEXT_BYTES_MAX} bytes")
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise SQLError(
            "42601", f"a mirror is read by one statement at a time, not {len(statements)}"
        )
    kind = statements[0].type.name
    judged = _explained(sql) if kind == "EXPLAIN" else Judged(sql)
    if kind == "EXPLAIN":
        inner = cursor.extract_statements(judged.query)
        kind = inner[0].type.name if len(inner) == 1 else "EXPLAIN"
    if kind != "SELECT":
        raise _writes(kind)
    _judge_select(cursor, judged.query)
    return judged


@dataclass(frozen=True, slots=True)
class Judged:
    """A query that only reads, and whether its plan is asked for instead of its rows."""

    query: str
    explain: duckdb.ExplainType | None = None


def _explained(sql: str) -> Judged:
    """The statement behind EXPLAIN. Raises SQLError 0A000 for EXPLAIN's options in parentheses."""
    tokens = [token for token in duckdb.tokenize(sql) if token[1] is not duckdb.token_type.comment]
    # Positions are in bytes of UTF-8.
    text = sql.encode()
    starts = [position for position, _ in tokens] + [len(text)]
    words = [_word(text[start:end]) for start, end in pairwise(starts)]
    assert words[0] == "explain", words
    analyze = len(words) > 1 and words[1] in ("analyze", "analyse")
    behind = 2 if analyze else 1
    if len(words) > behind + 1 and words[behind] == "(" and words[behind + 1] in _EXPLAIN_OPTIONS:
        raise SQLError("0A000", "EXPLAIN of a mirror's query takes no options but ANALYZE")
    kind = duckdb.ExplainType.ANALYZE if analyze else duckdb.ExplainType.STANDARD
    return Judged(text[starts[behind] :].decode(), kind)


def _word(token: bytes) -> str:
    """The word, or the parenthesis, that a token is: right behind it a comment may stand."""
    found = re.match(rb"\(|\w*", token)
    assert found is not None, token
    return found[0].decode().lower()


_EXPLAIN_OPTIONS = ("analyze", "analyse", "format", "codegen")


def _judge_select(cursor: duckdb.DuckDBPyConnection, query: str) -> None:
    found = cursor.execute("SELECT json_serialize_sql($1::VARCHAR)", [query]).fetchone()
    assert found is not None, "one row"
    seen = _Seen()
    try:
        tree = json.loads(found[0], object_hook=seen.note)
    except RecursionError as error:
        raise SQLError("54001", "statement is nested too deeply") from error
    if tree.get("error") is not False:
        raise _writes("such a statement")
    for kind in seen.queries - _QUERIES:
        raise _writes(kind.removesuffix("_NODE").removesuffix("_QUERY"))
    for kind in seen.from_items - _FROM_ITEMS:
        raise SQLError("0A000", f"a mirror's query has no {kind} in FROM")
    for name in (seen.table_functions - _TABLE_FUNCTIONS) | (seen.functions & _FUNCTIONS_REFUSED):
        raise SQLError(
            "42501",
            f"function {name} is not for queries of a mirror",
            detail="A mirror's query reads the tables of its file and nothing else.",
        )
    _judge_names(cursor, seen)


def _judge_names(cursor: duckdb.DuckDBPyConnection, seen: _Seen) -> None:
    """Raises SQLError 42P01 for a name that DuckDB would look for among files."""
    known = cursor.execute(
        "SELECT lower(table_name) FROM duckdb_tables() UNION SELECT lower(view_name) "
        "FROM duckdb_views()"
    ).fetchall()
    defined = {name for name in seen.defined if "." not in name and "/" not in name}
    unknown = seen.tables - {str(name) for (name,) in known} - defined
    if unknown:
        raise SQLError("42P01", f'table "{min(unknown)}" does not exist in the mirror')


@dataclass(slots=True)
class _Seen:
    """The functions and tables that a parse tree names, in lower case."""

    queries: set[str] = field(default_factory=set)
    from_items: set[str] = field(default_factory=set)
    table_functions: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    tables: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    """The names of WITH queries."""

    def note(self, node: dict[str, object]) -> dict[str, object]:
        """Takes one object of the tree, its parts having been taken before it.

        A query node has a `cte_map`, an item of FROM a `sample` and an `alias`.
        """
        kind = str(node.get("type", ""))
        if "cte_map" in node or kind.endswith("_NODE"):
            self.queries.add(kind)
        elif "sample" in node and "alias" in node:
            self.from_items.add(kind)
        if kind == "BASE_TABLE":
            self.tables.add(str(node["table_name"]).lower())
        function = node.get("function")
        if isinstance(function, dict):
            self.table_functions.add(str(function.get("function_name")).lower())
        if "function_name" in node:
            self.functions.add(str(node["function_name"]).lower())
        if set(node) == {"key", "value"}:
            self.defined.add(str(node["key"]).lower())
        return node


def _writes(kind: str) -> SQLError:
    return SQLError(
        "25006",
        f"cannot execute {kind} in a mirror, which is read-only",
        hint="A mirror is written by its changefeed alone. Read it with SELECT.",
    )
