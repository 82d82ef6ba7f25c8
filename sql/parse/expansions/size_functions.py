"""pg_relation_size() and its kin, as queries on what the store says of sizes."""

from __future__ import annotations

from sqlglot import exp

from .catalog_queries import Arguments, Make, query
from .registered_names import named_relation

_ONE = "SELECT min({column}) FROM tailrace_internal.sizes AS _z WHERE _z.oid = $1"
_MAIN = query(_ONE.format(column="_z.main_bytes"))
_INDEXES = query(_ONE.format(column="_z.total_bytes - _z.main_bytes"))
_TOTAL = query(_ONE.format(column="_z.total_bytes"))


def _of_relation(make: Make) -> Make:
    return lambda arguments: make([named_relation(arguments)])


def _relation_size(arguments: Arguments) -> exp.Expr:
    """`pg_relation_size(relation [, fork])`: the forks beside the main one are PostgreSQL's."""
    size = _of_relation(_MAIN)(arguments)
    if len(arguments) < 2:
        return size
    main = exp.EQ(this=arguments[1].copy(), expression=exp.Literal.string("main"))
    zero = exp.cast(exp.Literal.number(0), "INT8", dialect="postgres")
    return exp.Case(ifs=[exp.If(this=main, true=size)], default=zero)


SIZE_FUNCTIONS: dict[str, Make] = {
    "pg_relation_size": _relation_size,
    "pg_table_size": _of_relation(_MAIN),
    "pg_indexes_size": _of_relation(_INDEXES),
    "pg_total_relation_size": _of_relation(_TOTAL),
    "pg_tablespace_size": query(
        "SELECT CAST(sum(_z.bytes) AS INT8) FROM tailrace_internal.database_sizes AS _z "
        "WHERE CAST($1 AS TEXT) IN ('pg_default', '1663')"
    ),
    "pg_database_size": query(
        "SELECT min(_z.bytes) FROM tailrace_internal.database_sizes AS _z "
        "WHERE CAST($1 AS TEXT) IN (_z.name, CAST(_z.oid AS TEXT))"
    ),
}
