"""SQLAlchemy on the store in this process: `create_engine("tailrace:///data")`.

The dialect is PostgreSQL's over `tailrace.dbapi`. A path behind three slashes is relative, behind
four absolute; without one the store is in memory. `?database=shop` begins in that database.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sqlalchemy import URL, pool, types
from sqlalchemy.dialects.postgresql import JSON, JSONB
from sqlalchemy.dialects.postgresql.base import PGDialect


def _cast(kind: type[types.TypeEngine[Any]]) -> type[types.TypeEngine[Any]]:
    """The type, whose parameters are cast to it: `SELECT $1` alone would be a text."""
    return type(kind.__name__, (kind,), {"render_bind_cast": True})


_CAST = {
    kind: _cast(kind)
    for kind in (
        types.String,
        types.Integer,
        types.BigInteger,
        types.SmallInteger,
        types.Numeric,
        types.Float,
        types.Boolean,
        types.Date,
        types.Time,
        types.DateTime,
        types.LargeBinary,
        JSON,
        JSONB,
    )
}


class TailraceDialect(PGDialect):
    driver = "tailrace"
    default_paramstyle = "pyformat"
    supports_statement_cache = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    colspecs = {  # noqa: RUF012  as SQLAlchemy declares it
        **PGDialect.colspecs,
        **_CAST,
        types.JSON: _CAST[JSON],
    }

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        from . import dbapi

        return dbapi

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """A store in memory is its one connection's."""
        return pool.QueuePool if url.database else pool.StaticPool

    def create_connect_args(self, url: URL) -> tuple[list[str], dict[str, str]]:
        given = {name: str(value) for name, value in url.query.items()}
        return [url.database or ":memory:"], given
