"""The families of column types, and what each is called elsewhere."""

from __future__ import annotations

from enum import Enum

import pyarrow as pa

from .errors import SQLError


class TypeKind(Enum):
    """The families of types. The value is the name that SQL prints."""

    BOOL = "BOOL"
    INT2 = "INT2"
    INT4 = "INT4"
    INT8 = "INT8"
    FLOAT4 = "FLOAT4"
    FLOAT8 = "FLOAT8"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    VARCHAR = "VARCHAR"
    CHAR = "CHAR"
    BYTES = "BYTES"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMPTZ = "TIMESTAMPTZ"
    INTERVAL = "INTERVAL"
    UUID = "UUID"
    JSONB = "JSONB"
    ENUM = "ENUM"  # a type that a user made; SQL prints its own name
    ARRAY = "ARRAY"  # of another kind, in one dimension

    __hash__ = object.__hash__  # every value is converted by its kind, and Enum's is slow


class CatalogName(Enum):
    """Types of pg_catalog's columns that clients know. Their values are those of other kinds."""

    OID = "oid"  # of kind INT8
    CHAR = '"char"'  # one letter, of kind STRING
    NAME = "name"  # a column's, of kind STRING: Sequelize reads arrays of them as no other arrays
    INT2VECTOR = "int2vector"  # numbers of columns, arrays of INT8
    OIDVECTOR = "oidvector"  # arrays of object ids
    VOID = "void"  # what functions return that only do something: an empty STRING


BROAD = {
    TypeKind.INT2: TypeKind.INT8,
    TypeKind.INT4: TypeKind.INT8,
    TypeKind.VARCHAR: TypeKind.STRING,
    TypeKind.CHAR: TypeKind.STRING,
}
"""Kinds that hold some of the values of another: expressions are of that other kind."""

INTEGERS = (TypeKind.INT2, TypeKind.INT4, TypeKind.INT8)
FLOATS = (TypeKind.FLOAT4, TypeKind.FLOAT8)
KEYLESS = (TypeKind.JSONB, TypeKind.ARRAY)
"""Kinds whose values no key holds."""
TEXTS = (TypeKind.STRING, TypeKind.VARCHAR, TypeKind.CHAR)

SQL_NAMES = {
    "bool": TypeKind.BOOL,
    "boolean": TypeKind.BOOL,
    "int2": TypeKind.INT2,
    "smallint": TypeKind.INT2,
    "int4": TypeKind.INT4,
    "int8": TypeKind.INT8,
    "bigint": TypeKind.INT8,
    "int": TypeKind.INT8,  # as CockroachDB has it, whose dialect of types this is
    "integer": TypeKind.INT8,
    "int64": TypeKind.INT8,
    "float4": TypeKind.FLOAT4,
    "real": TypeKind.FLOAT4,
    "float8": TypeKind.FLOAT8,
    "float": TypeKind.FLOAT8,
    "double": TypeKind.FLOAT8,
    "double precision": TypeKind.FLOAT8,
    "decimal": TypeKind.DECIMAL,
    "numeric": TypeKind.DECIMAL,
    "dec": TypeKind.DECIMAL,
    "string": TypeKind.STRING,
    "text": TypeKind.STRING,
    "varchar": TypeKind.VARCHAR,
    "character varying": TypeKind.VARCHAR,
    "char": TypeKind.CHAR,
    "character": TypeKind.CHAR,
    "bpchar": TypeKind.CHAR,
    "bytes": TypeKind.BYTES,
    "bytea": TypeKind.BYTES,
    "blob": TypeKind.BYTES,
    "date": TypeKind.DATE,
    "time": TypeKind.TIME,
    "time without time zone": TypeKind.TIME,
    "timestamp": TypeKind.TIMESTAMP,
    "timestamp without time zone": TypeKind.TIMESTAMP,
    "timestamptz": TypeKind.TIMESTAMPTZ,
    "timestamp with time zone": TypeKind.TIMESTAMPTZ,
    "interval": TypeKind.INTERVAL,
    "uuid": TypeKind.UUID,
    "jsonb": TypeKind.JSONB,
    "json": TypeKind.JSONB,  # as CockroachDB has it
}

_ELSEWHERE = {
    "timetz": "TIME",
    "time with time zone": "TIME",
}

DUCKDB_NAMES = {
    TypeKind.BOOL: "BOOLEAN",
    TypeKind.INT2: "SMALLINT",
    TypeKind.INT4: "INTEGER",
    TypeKind.INT8: "BIGINT",
    TypeKind.FLOAT4: "FLOAT",
    TypeKind.FLOAT8: "DOUBLE",
    TypeKind.STRING: "VARCHAR",
    TypeKind.VARCHAR: "VARCHAR",
    TypeKind.CHAR: "VARCHAR",
    TypeKind.BYTES: "BLOB",
    TypeKind.DATE: "DATE",
    TypeKind.TIME: "TIME",
    TypeKind.TIMESTAMP: "TIMESTAMP",
    TypeKind.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
    TypeKind.INTERVAL: "INTERVAL",
    TypeKind.UUID: "UUID",
    TypeKind.JSONB: "JSON",
}

ARROW_TYPES: dict[TypeKind, pa.DataType] = {
    TypeKind.BOOL: pa.bool_(),
    TypeKind.INT2: pa.int16(),
    TypeKind.INT4: pa.int32(),
    TypeKind.INT8: pa.int64(),
    TypeKind.FLOAT4: pa.float32(),
    TypeKind.FLOAT8: pa.float64(),
    TypeKind.STRING: pa.string(),
    TypeKind.VARCHAR: pa.string(),
    TypeKind.CHAR: pa.string(),
    TypeKind.BYTES: pa.binary(),
    TypeKind.DATE: pa.date32(),
    TypeKind.TIME: pa.time64("us"),
    TypeKind.TIMESTAMP: pa.timestamp("us"),
    TypeKind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    TypeKind.INTERVAL: pa.month_day_nano_interval(),
    TypeKind.UUID: pa.uuid(),
    TypeKind.JSONB: pa.json_(),
    TypeKind.ENUM: pa.string(),
}


_NAMELESS = (TypeKind.ARRAY, TypeKind.ENUM)


def unknown_type(name: str, words: str) -> SQLError:
    instead = _ELSEWHERE.get(words)
    if instead is not None:
        return SQLError(
            "0A000", f"type {name.upper()} is not supported", hint=f"Use {instead} instead."
        )
    known = ", ".join(kind.value for kind in TypeKind if kind not in _NAMELESS)
    return SQLError("42704", f'type "{name}" does not exist', hint=f"Known types: {known}.")
