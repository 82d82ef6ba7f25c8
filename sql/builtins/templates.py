"""Trees of DuckDB's dialect, out of text with places for trees."""

from __future__ import annotations

from functools import cache, lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from ...catalog.values.column_types import ColumnType
from ..syntax.trees import CAST_TYPE, copied, own, wrap
from .macros import PREFIX

DUCKDB = DuckDB()
DUCKDB.INDEX_OFFSET = 0  # subscripts are as they are written, as `sql.parse.dialect` has them

TYPES_KEPT_MAX = 256
"""Types whose names are not read again: users declare enumerations, and decimals of many widths."""


def duckdb(template: str, **parts: exp.Expr) -> exp.Expr:
    """Returns the expression of a DuckDB `template`, each `:name` replaced by the tree of that
    name."""
    tree = copied(_parsed(template))
    for node in list(tree.find_all(exp.Placeholder)):
        part = exp.Paren(this=own(parts[node.name]))
        if node is tree:
            return part
        node.replace(part)
    return exp.Paren(this=tree) if isinstance(tree, exp.Binary) else tree


@cache
def _parsed(template: str) -> exp.Expr:
    tree: exp.Expr = sqlglot.parse_one(template, dialect=DUCKDB)
    # What begins with a parenthesis might be a query, and comes as an alias that is none.
    return tree.this if isinstance(tree, exp.Alias) else tree


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of one of the macros."""
    return exp.Anonymous(this=f"{PREFIX}{name}", expressions=list(map(own, arguments)))


def plain(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function of DuckDB's."""
    return exp.Anonymous(this=name, expressions=list(map(own, arguments)))


def text(value: str) -> exp.Expr:
    return exp.Literal.string(value)


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def duckdb_type(type: ColumnType) -> exp.DataType:
    """Returns the name of the type in DuckDB as a tree, which is the caller's."""
    return copied(_read_type(type.duckdb_name))


@lru_cache(TYPES_KEPT_MAX)
def _read_type(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def cast_to(tree: exp.Expr, type: ColumnType) -> exp.Cast:
    made = exp.Cast(this=tree, to=duckdb_type(type))
    made.meta[CAST_TYPE] = type
    return made


def cast_in_place(tree: exp.Expr, type: ColumnType) -> exp.Expr:
    """Puts a cast of the tree in its place. Returns the cast."""
    return wrap(tree, lambda inner: cast_to(inner, type))
