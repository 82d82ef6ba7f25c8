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


# Parameters are cast to what SQLAlchemy knows of them: `SELECT $1` alone would be a text.
class _String(types.String):
    render_bind_cast = True


class _Integer(types.Integer):
    render_bind_cast = True


class _BigInteger(types.BigInteger):
    render_bind_cast = True


class _SmallInteger(types.SmallInteger):
    render_bind_cast = True


class _Numeric(types.Numeric[Any]):
    render_bind_cast = True


class _Float(types.Float[Any]):
    render_bind_cast = True


class _Boolean(types.Boolean):
    render_bind_cast = True


class _Date(types.Date):
    render_bind_cast = True


class _Time(types.Time):
    render_bind_cast = True


class _DateTime(types.DateTime):
    render_bind_cast = True


class _LargeBinary(types.LargeBinary):
    render_bind_cast = True


class _JSON(JSON):
    render_bind_cast = True


class _JSONB(JSONB):
    render_bind_cast = True


class TailraceDialect(PGDialect):
    driver = "tailrace"
    default_paramstyle = "pyformat"
    supports_statement_cache = True
    supports_native_decimal = True
    supports_sane_rowcount = True
    colspecs = {  # noqa: RUF012  as SQLAlchemy declares it
        **PGDialect.colspecs,
        types.String: _String,
        types.Integer: _Integer,
        types.BigInteger: _BigInteger,
        types.SmallInteger: _SmallInteger,
        types.Numeric: _Numeric,
        types.Float: _Float,
        types.Boolean: _Boolean,
        types.Date: _Date,
        types.Time: _Time,
        types.DateTime: _DateTime,
        types.LargeBinary: _LargeBinary,
        types.JSON: _JSON,
        JSON: _JSON,
        JSONB: _JSONB,
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
