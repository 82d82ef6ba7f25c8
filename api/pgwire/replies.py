"""Messages of the server: values as frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from functools import lru_cache
from struct import Struct, pack

from ...catalog.values.errors import SQLError
from ...sql import ResultColumn, SessionState
from .wire_types import wire_type

_LENGTH = Struct("!I")
_FIELD = Struct("!IhIhih")

AUTHENTICATION_OK = b"R\0\0\0\x08\0\0\0\0"
CLEARTEXT_PASSWORD = b"R\0\0\0\x08\0\0\0\x03"
PARSE_COMPLETE = b"1\0\0\0\x04"
BIND_COMPLETE = b"2\0\0\0\x04"
CLOSE_COMPLETE = b"3\0\0\0\x04"
NO_DATA = b"n\0\0\0\x04"
EMPTY_QUERY = b"I\0\0\0\x04"
PORTAL_SUSPENDED = b"s\0\0\0\x04"
COPY_DONE = b"c\0\0\0\x04"
TLS_ACCEPTED = b"S"
TLS_DECLINED = b"N"

TAGS_KEPT_MAX = 1000
"""CommandComplete of statements of a row or a few is the same again and again."""

READY = {
    SessionState.IDLE: b"Z\0\0\0\x05I",
    SessionState.IN_TRANSACTION: b"Z\0\0\0\x05T",
    SessionState.FAILED: b"Z\0\0\0\x05E",
}
"""ReadyForQuery by the state of the session's transaction."""


class Severity(Enum):
    ERROR = "ERROR"  # the statement has failed
    FATAL = "FATAL"  # the connection ends
    WARNING = "WARNING"
    NOTICE = "NOTICE"


def frame(kind: bytes, body: bytes) -> bytes:
    return kind + _LENGTH.pack(len(body) + 4) + body


def text(value: str) -> bytes:
    """Text that ends in a zero byte. A zero in it would end it early, so there is none."""
    return value.replace("\0", "").encode(errors="replace") + b"\0"


def error(told: SQLError, severity: Severity = Severity.ERROR) -> bytes:
    return frame(b"E", _fields(told, severity))


def notice(message: str, *, sqlstate: str = "00000", severity: Severity = Severity.NOTICE) -> bytes:
    return frame(b"N", _fields(SQLError(sqlstate, message), severity))


def _fields(told: SQLError, severity: Severity) -> bytes:
    violated = told.violated
    fields = [
        (b"S", severity.value),
        (b"V", severity.value),
        (b"C", told.sqlstate),
        (b"M", told.message),
        (b"D", told.detail),
        (b"H", told.hint),
        (b"P", None if told.position is None else str(told.position)),
        (b"t", violated and violated.table),
        (b"c", violated and violated.column),
        (b"n", violated and violated.constraint),
        (b"R", told.routine),
    ]
    return b"".join(code + text(value) for code, value in fields if value) + b"\0"


def negotiate_version(unknown: Sequence[str]) -> bytes:
    """The newest minor version that there is, and the protocol options that nobody knows."""
    names = b"".join(text(name) for name in unknown)
    return frame(b"v", pack("!ii", 0, len(unknown)) + names)


def sasl_mechanisms(names: Iterable[str]) -> bytes:
    return frame(b"R", pack("!i", 10) + b"".join(text(name) for name in names) + b"\0")


def sasl_continue(data: str) -> bytes:
    return frame(b"R", pack("!i", 11) + data.encode())


def sasl_final(data: str) -> bytes:
    return frame(b"R", pack("!i", 12) + data.encode())


def backend_key(process_id: int, secret: int) -> bytes:
    return frame(b"K", pack("!ii", process_id, secret))


def parameter_status(name: str, value: str) -> bytes:
    return frame(b"S", text(name) + text(value))


def parameter_description(oids: Sequence[int]) -> bytes:
    return frame(b"t", pack(f"!H{len(oids)}I", len(oids), *oids))


def row_description(columns: Sequence[ResultColumn], formats: Sequence[int]) -> bytes:
    """`formats` has one for each column."""
    parts = [pack("!H", len(columns))]
    for column, form in zip(columns, formats, strict=True):
        wire = wire_type(column.type)
        parts.append(text(column.name))
        table, number = column.origin or (0, 0)
        modifier = wire.modifier(column.type)
        parts.append(_FIELD.pack(table, number, wire.oid, wire.size, modifier, form))
    return frame(b"T", b"".join(parts))


@lru_cache(maxsize=TAGS_KEPT_MAX)
def command_complete(tag: str) -> bytes:
    return frame(b"C", text(tag))


def copy_response(kind: bytes, *, binary: bool, column_count: int) -> bytes:
    """CopyInResponse (`G`) or CopyOutResponse (`H`)."""
    form = int(binary)
    formats = pack(f"!{column_count}h", *([form] * column_count))
    return frame(kind, pack("!bh", form, column_count) + formats)


def copy_data(data: bytes) -> bytes:
    return frame(b"d", data)


def copy_rows(rows: Sequence[bytes]) -> bytes:
    """A message for each row: clients take them apart by that."""
    length = _LENGTH.pack
    return b"".join([b"d" + length(len(row) + 4) + row for row in rows])
